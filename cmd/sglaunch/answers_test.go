package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sglaunch/internal/serve"
)

const foundingPatch = "flashinfer-cutlass-autotune"

// Wrong answers of a patched server are remembered: the next launch leaves the
// patch out and says why, the plan says so, and a person can trust it again.
// What the run has tuned is put aside.
func TestWrongAnswersAreRemembered(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, "[relaunch]\npolicy = \"never\"\n", "0.5.12")
	caches := filepath.Join(b.dir, "caches")
	b.env = []string{"SGLANG_CACHE_DIR=" + caches}

	l := b.launch("corrupt-output")
	if code := l.wait(); code != exitLater {
		t.Errorf("exit code %d, want %d:\n%s", code, exitLater, l.stderr.bytes())
	}
	l.await(`its answers are wrong: 4 of 4, answer 1`)
	l.await(`put aside as \*\.wrong-answers-`)
	aside, err := filepath.Glob(filepath.Join(caches, "flashinfer", "autotune", "*", "*", "*", "rank_*.json.wrong-answers-*"))
	if err != nil || len(aside) != 1 {
		t.Errorf("put aside: %q %v", aside, err)
	}
	kept, err := filepath.Glob(filepath.Join(b.dir, "state", "launches", "*", "attempts", "1", "evidence", "answers.jsonl"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("wrong answers kept: %q %v", kept, err)
	}
	if data, err := os.ReadFile(kept[0]); err != nil || strings.Count(string(data), `"fault":"one token`) != 4 {
		t.Errorf("%v\n%s", err, data)
	}

	var result struct {
		Check serve.OutputCheck `json:"output_check"`
	}
	if err := json.Unmarshal(readFile(t, one(t, filepath.Join(b.dir, "state", "launches", "*", "attempts", "1", "result.json"))), &result); err != nil {
		t.Error(err)
	}
	if c := result.Check; c.State != "corrupt" || c.Done != 4 || c.Of != 4 || !strings.Contains(c.Reason, "4 of 4") {
		t.Errorf("result.json says of the check: %+v", c)
	}

	plan := []string{"patch", "plan", "-c", b.toml, "--"}
	if out := b.ask(append(plan, b.argv...)...); !strings.Contains(out, "left out by a launch: "+foundingPatch+" gave wrong answers") {
		t.Errorf("the plan does not say so:\n%s", out)
	}
	next := b.launch("healthy")
	next.await(`running without a patch: ` + foundingPatch + ` gave wrong answers .*sglaunch patch trust`)
	next.signal(syscall.SIGTERM)
	next.wait()

	b.ask("patch", "trust", foundingPatch)
	again := b.launch("healthy")
	again.await(`patch ` + foundingPatch + ` is applied`)
	again.signal(syscall.SIGTERM)
	again.wait()
}
