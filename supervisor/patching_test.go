package supervisor

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sglaunch/patch"
)

func TestVerdictOnRefusedTargets(t *testing.T) {
	for state, want := range map[patch.State]string{
		patch.WasApplied: "refused", patch.Pristine: "refused", patch.Drifted: "drifted", patch.Missing: "missing",
	} {
		if got := verdictOn(patch.Target{State: state}); got != want {
			t.Errorf("%s is told as %q, want %q", state, got, want)
		}
	}
}

func TestNotRevertedNamesTheCommand(t *testing.T) {
	r := &patch.Reverted{Drifted: []string{"/p/a.py"}}
	drift := fmt.Errorf("cannot restore /p/a.py: %w", patch.ErrDrifted)
	if got := notReverted(r, drift); !strings.Contains(got, "`sglaunch patch revert --force /p/a.py`") {
		t.Errorf("a drift is told as %q", got)
	}
	if got := notReverted(r, errors.New("EROFS")); got != "EROFS" {
		t.Errorf("another error is told as %q", got)
	}
}

func TestKeptLines(t *testing.T) {
	held := []patch.Held{
		{Path: "/p/a.py", State: patch.WasApplied, Patches: []string{"p1"}, Kept: true},
		{Path: "/p/b.py", State: patch.WasApplied, Patches: []string{"p2"}},
		{Path: "/p/c.py", State: patch.Drifted, Patches: []string{"p3"}, Kept: true},
	}
	got := keptLines(held, func(string) bool { return true })
	if want := "patch p1 stays in /p/a.py until `sglaunch patch revert`"; len(got) != 1 || got[0] != want {
		t.Errorf("told %q, want %q", got, want)
	}
}
