package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sglaunch/internal/gpu"
	"sglaunch/internal/preflight"
	"sglaunch/patch"
	"sglaunch/supervisor/machine"
)

// What a check refuses has the exit code that the launch would end with, and
// where several refuse, the one for which there is the least hope.
func TestRefusalCode(t *testing.T) {
	failed := func(causes ...string) (checks []preflight.Check) {
		checks = append(checks, preflight.Check{Name: "disk", Status: preflight.OK})
		for _, c := range causes {
			checks = append(checks, preflight.Check{Name: c, Status: preflight.Fail, Cause: c, Found: c + " it is"})
		}
		return checks
	}
	for _, test := range []struct {
		checks []preflight.Check
		code   int
		cause  string
	}{
		{failed(), 0, ""},
		{failed("port_in_use"), machine.CodeLater, "port_in_use"},
		{failed("port_in_use", "import_error"), machine.CodeNever, "import_error"},
		{failed("model_path_missing", "port_in_use"), machine.CodeNever, "model_path_missing"},
		{failed("driver_mismatch"), machine.CodeHeld, "driver_mismatch"},
	} {
		if got := RefusalCode(test.checks); got != test.code {
			t.Errorf("%v: code %d, want %d", test.checks, got, test.code)
		}
		if got := refusal(test.checks); got.Cause != test.cause {
			t.Errorf("%v: cause %q, want %q", test.checks, got.Cause, test.cause)
		}
	}
	refused := checksOf([]patch.Target{{Patch: "mine", State: patch.Drifted, Refused: true}})
	if got := RefusalCode(append(failed(), refused...)); got != machine.CodePatch {
		t.Errorf("a refused patch: code %d", got)
	}
	if got := RefusalCode(append(failed("model_path_missing"), refused...)); got != machine.CodeNever {
		t.Errorf("a refused patch behind a missing model: code %d", got)
	}
}

// Each file has its line: a refused one fails, unless the launch may go on
// without the patch.
func TestChecksOfPatches(t *testing.T) {
	checks := checksOf([]patch.Target{
		{Patch: "a", State: patch.Pristine, Path: "/p/a.py", Reason: "the file is as released"},
		{Patch: "b", State: patch.Drifted, Path: "/p/b.py", Reason: "it does not fit", Hint: "write it anew", Refused: true, OnRefused: patch.RefusedAbort},
		{Patch: "c", State: patch.Missing, Reason: "there is no c", Refused: true, OnRefused: patch.RefusedUnpatched},
		{Patch: "d", State: patch.Pristine, Path: "/p/d.py", Reason: "read-only", Refused: true, OnRefused: patch.RefusedAbort},
	})
	want := []preflight.Check{
		{Name: "patch", Status: preflight.OK, Found: "a is pristine in /p/a.py: the file is as released"},
		{Name: "patch", Status: preflight.Fail, Found: "b is drifted in /p/b.py: it does not fit", Advice: "write it anew"},
		{Name: "patch", Status: preflight.Warn, Found: "c is missing: there is no c; the launch runs without it"},
		{Name: "patch", Status: preflight.Fail, Found: "d is refused in /p/d.py: read-only"},
	}
	if !slices.Equal(checks, want) {
		t.Errorf("got  %+v\nwant %+v", checks, want)
	}
}

// What the flags forbid is told of a patch that will be in force, once for all
// its files.
func TestUnmetPatches(t *testing.T) {
	var all []patch.Patch
	for _, name := range []string{"used", "refused", "there"} {
		all = append(all, patch.Patch{Name: name, Module: "m", Edits: []patch.Edit{{Find: "a", Replace: "b"}},
			Requires: []patch.Requirement{{Flag: "--x", Is: []string{"y"}}}})
	}
	targets := []patch.Target{
		{Patch: "used", State: patch.Pristine}, {Patch: "used", State: patch.Pristine},
		{Patch: "refused", State: patch.Pristine, Refused: true}, {Patch: "there", State: patch.Obsolete},
	}
	if got := unmet(all, targets, nil); len(got) != 1 || got[0].Status != preflight.Warn || !strings.HasPrefix(got[0].Found, "used is not expected") {
		t.Errorf("told %+v", got)
	}
	if got := unmet(all, targets, []string{"--x", "y"}); len(got) > 0 {
		t.Errorf("with the flag: %+v", got)
	}
}

// A start script that is edited while its server runs is that of the next attempt.
func TestScriptEditedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "start.sh")
	edit := func(ranks int) {
		text := fmt.Sprintf("exec python -m sglang.launch_server --model-path /m --tp %d\n", ranks)
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := &hands{Setup: Setup{Argv: []string{"sh", script}, Dir: dir}}
	gpus := gpu.Sample{GPUs: []gpu.GPU{{UUID: "GPU-a"}, {UUID: "GPU-b"}}}
	expect := func(when string, want int) {
		t.Helper()
		if got := h.pick(gpus); len(got) != want {
			t.Errorf("%s: %d GPUs of the attempt, want %d", when, len(got), want)
		}
	}
	edit(1)
	h.preflightInput(t.Context(), nil)
	expect("as it began", 1)
	edit(2)
	expect("edited", 1)
	h.preflightInput(t.Context(), nil)
	expect("the next attempt", 2)
}
