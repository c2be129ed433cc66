package main

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
)

// No command whose answer could not be written ends with success; one that
// failed on its own keeps its code, and says both.
func TestFullDisk(t *testing.T) {
	t.Setenv("SGLAUNCH_STATE", t.TempDir())
	for line, want := range map[string]int{
		"version": 1, "--help": 1, "patch": 1, "help run": 1, "completion bash": 1, "recover": 1, "recover --json": 1,
		"rules list": 1, "rules match x": 1, "patch status": 1, "history": 1, "docs": 1,
		"check --no-such-flag": exitUsage, "check -- /no/such/program": exitNever,
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		if code := execute(strings.Fields(line), full, &errs); code != want {
			t.Errorf("%s: exit code %d, want %d", line, code, want)
		}
		const lost = "sglaunch: cannot write to standard output: no space left on device\n"
		if n := strings.Count(errs.String(), lost); want != exitUsage && n != 1 {
			t.Errorf("%s says:\n%s", line, &errs)
		}
		if err := full.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A reader that has seen enough is no news.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("x"); err == nil || !strings.Contains(err.Error(), syscall.EPIPE.Error()) {
		t.Fatalf("the pipe is not closed: %v", err)
	}
	var errs bytes.Buffer
	if code := execute([]string{"version"}, w, &errs); code != 1 || errs.Len() > 0 {
		t.Errorf("exit code %d: %s", code, &errs)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
