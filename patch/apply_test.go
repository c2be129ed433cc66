package patch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tiny is a package in which one constant decides.
var tiny = map[string]string{
	"tiny/__init__.py":    "",
	"tiny/core/switch.py": "class Switch:\n    def on(self):\n        return False  # TODO\n\n\ndef name():\n    return 'tiny'\n",
	"tiny/other.py":       "x = 1\n",
}

func tinyVenv(t *testing.T) *venv {
	v := newVenv(t)
	v.install("tiny", "1.2.0", tiny)
	return v
}

func switchOn() Patch {
	return Patch{Name: "switch-on", Module: "tiny.core.switch",
		Edits: []Edit{{Within: "class Switch / def on", Find: "return False  # TODO", Replace: "return True"}}}
}

const askSwitch = "from tiny.core.switch import Switch; print(Switch().on())"

func TestApplyAndRevertLeaveNoTrace(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	v.run(askSwitch) // bytecode of the original is there
	before := snapshot(t, v.root)
	l := ledger(t)

	p := plan(t, l, v, switchOn())
	if got := p.Targets[0]; got.State != Pristine || got.Refused {
		t.Fatalf("target is %+v", got)
	}
	same(t, before, snapshot(t, v.root)) // a plan writes nothing

	apply(t, l, p, "night")
	patched := snapshot(t, v.root)
	for path, was := range before {
		if now := patched[path]; was.Mode.IsDir() && now != was {
			t.Errorf("the folder %s was %+v and is %+v", path, was, now)
		}
	}
	if got := v.run(askSwitch); got != "True" {
		t.Errorf("patched code says %s", got)
	}
	if got := plan(t, l, v, switchOn()).Targets[0]; got.State != WasApplied || got.Refused {
		t.Errorf("target after apply is %+v", got)
	}
	if r := revert(t, l, "night"); len(r.Restored) != 1 {
		t.Errorf("reverted %+v", r)
	}
	same(t, before, snapshot(t, v.root))
	if got := v.run(askSwitch); got != "False" {
		t.Errorf("restored code says %s", got)
	}
	same(t, before, snapshot(t, v.root)) // the old bytecode is valid: nothing was compiled
}

func TestWithoutBytecodeBefore(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	before := snapshot(t, v.root)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	v.run("import sys, importlib.util\nspec = importlib.util.spec_from_file_location('s', '" + v.path("tiny/core/switch.py") + "')\nm = importlib.util.module_from_spec(spec); spec.loader.exec_module(m)")
	if _, err := os.Stat(v.path("tiny/core/__pycache__")); err != nil {
		t.Fatal("the test needs bytecode of the patched file:", err)
	}
	revert(t, l, "night")
	same(t, before, snapshot(t, v.root))
}

func TestLedgerIsTidyAfterRevert(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	revert(t, l, "night")
	for _, dir := range []string{originalsName, linksName, overlaysName} {
		entries, err := os.ReadDir(filepath.Join(l.dir, dir))
		if err != nil || len(entries) > 0 {
			t.Errorf("%s holds %v, %v", dir, entries, err)
		}
	}
}

// Somebody who removes the state directory under a launch, or has another sglaunch
// make it anew, takes no original with it.
func TestLostLedgerIsRemembered(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*testing.T, *Ledger){
		"removed": func(*testing.T, *Ledger) {},
		"made anew": func(t *testing.T, l *Ledger) {
			if _, err := OpenLedger(l.dir); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := tinyVenv(t)
			v.run(askSwitch)
			before := snapshot(t, v.root)
			l := ledger(t)
			apply(t, l, plan(t, l, v, switchOn()), "night")
			if err := os.RemoveAll(l.dir); err != nil {
				t.Fatal(err)
			}
			meanwhile(t, l)
			if r := revert(t, l, "night"); len(r.Restored) != 1 {
				t.Errorf("reverted %+v", r)
			}
			same(t, withoutInodes(before), withoutInodes(snapshot(t, v.root))) // a removed hard link is gone for good
			if r := revert(t, l, "night"); len(r.Restored)+len(r.Clean) > 0 {
				t.Errorf("reverted again %+v", r)
			}
		})
	}
}

// What another launch has patched since is not ours to restore, and is told.
func TestLostLedgerWithAnotherPatch(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	if err := os.RemoveAll(l.dir); err != nil {
		t.Fatal(err)
	}
	other, err := OpenLedger(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	p := switchOn()
	p.Name, p.AllowChanged = "switch-none", true
	p.Edits[0].Find, p.Edits[0].Replace = "return True", "return None"
	apply(t, other, plan(t, other, v, p), "day")
	if _, err := l.Revert(t.Context(), "night"); err == nil || !strings.Contains(err.Error(), "another launch has patched it since") {
		t.Errorf("revert: %v", err)
	}
	if got := v.run(askSwitch); got != "None" {
		t.Errorf("patched code says %s", got)
	}
}

func TestTwiceIsOnce(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	before := snapshot(t, v.root)
	l := ledger(t)
	if r := revert(t, l, "night"); len(r.Restored)+len(r.Clean) > 0 {
		t.Errorf("revert of nothing did %+v", r)
	}
	apply(t, l, plan(t, l, v, switchOn()), "night")
	once := snapshot(t, v.root)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	same(t, once, snapshot(t, v.root))
	revert(t, l, "night")
	revert(t, l, "night")
	same(t, before, snapshot(t, v.root))
}

func TestLastLeaseOutReverts(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	before := snapshot(t, v.root)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "a")
	if a := apply(t, l, plan(t, l, v, switchOn()), "b"); len(a.Shared) != 1 {
		t.Errorf("second launch %+v", a)
	}
	other := switchOn()
	other.Edits[0].Replace = "return None"
	p := plan(t, l, v, other)
	if len(p.Refused()) != 1 {
		t.Errorf("a different patch is not refused: %+v", p.Targets)
	}
	if r := revert(t, l, "a"); len(r.Leased) != 1 {
		t.Errorf("first out %+v", r)
	}
	if got := v.run(askSwitch); got != "True" {
		t.Errorf("patched code says %s", got)
	}
	revert(t, l, "b")
	os.RemoveAll(v.path("tiny/__pycache__")) // the run compiled what had not been before
	after := snapshot(t, v.root)
	delete(before, "")
	if after["/lib"] != before["/lib"] {
		t.Error("folders moved")
	}
}
