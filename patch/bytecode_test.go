package patch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sameSize is a patch that changes no length: only the time can tell.
func sameSize() Patch {
	return Patch{Name: "same-size", Module: "tiny.core.switch",
		Edits: []Edit{{Within: "class Switch", Find: "False  # TODO", Replace: "True   # TODO"}}}
}

// T15, T16, T17: flips as fast as can be, with imports between them that leave
// bytecode each time. The code that runs is always that of the file.
func TestQuickFlipsNeverRunStaleBytecode(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	v.run(askSwitch)
	before := snapshot(t, v.root)
	l := ledger(t)
	for i := range 6 {
		apply(t, l, plan(t, l, v, sameSize()), "night")
		if got := v.run(askSwitch); got != "True" {
			t.Fatalf("flip %d: patched code says %s", i, got)
		}
		revert(t, l, "night")
		if got := v.run(askSwitch); got != "False" {
			t.Fatalf("flip %d: restored code says %s", i, got)
		}
	}
	same(t, before, snapshot(t, v.root))
}

// Patches of one size, one after the other within one second: no version of the
// file has the time of another.
func TestTimesAreNeverUsedTwice(t *testing.T) {
	t.Parallel()
	st := newStage(t, fastDir(t), fastDir(t))
	seen := map[int64]bool{}
	for range 3 {
		l := st.ledger(t, osDisk{})
		now := time.Date(2026, 2, 19, 5, 52, 41, 0, time.UTC) // near the original's time, and standing still
		l.now = func() time.Time { return now }
		if err := st.apply(l); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(st.v.path("tiny/core/switch.py"))
		if err != nil {
			t.Fatal(err)
		}
		if seen[info.ModTime().Unix()] {
			t.Error("a whole second was used twice")
		}
		seen[info.ModTime().Unix()] = true
		if err := st.revert(l); err != nil {
			t.Fatal(err)
		}
	}
	st.unchanged(t, "three rounds")
}

const compileTiny = "import py_compile, sys; py_compile.compile(sys.argv[1], invalidation_mode=py_compile.PycInvalidationMode.%s, doraise=True)"

// T18: bytecode that is never checked wins over every source. It is out of the
// way while the patch is in, and back afterwards.
func TestUncheckedBytecode(t *testing.T) {
	t.Parallel()
	for mode, kind := range map[string]string{"UNCHECKED_HASH": "unchecked-hash", "CHECKED_HASH": "checked-hash", "TIMESTAMP": "timestamp"} {
		t.Run(kind, func(t *testing.T) {
			v := tinyVenv(t)
			v.run(strings.Replace(strings.ReplaceAll(compileTiny, "sys.argv[1]", "'"+v.path("tiny/core/switch.py")+"'"), "%s", mode, 1))
			v.run("import tiny.core")
			before := snapshot(t, v.root)
			l := ledger(t)
			p := plan(t, l, v, switchOn())
			if got := p.Targets[0].Bytecode; got != kind {
				t.Errorf("the plan says %s", got)
			}
			apply(t, l, p, "night")
			if got := v.run(askSwitch); got != "True" {
				t.Errorf("patched code says %s", got)
			}
			revert(t, l, "night")
			same(t, before, snapshot(t, v.root))
			if got := v.run(askSwitch); got != "False" {
				t.Errorf("restored code says %s", got)
			}
		})
	}
}

// T19: bytecode outside the tree, where the server's environment puts it.
func TestBytecodeUnderAPrefix(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	prefix := "PYTHONPYCACHEPREFIX=" + filepath.Join(t.TempDir(), "cache")
	v.run(askSwitch, prefix)
	l := ledger(t)
	in := v.interpreter()
	in.Env = append(in.Env, prefix)
	p, err := MakePlan(t.Context(), l, in, []Patch{sameSize()})
	v.must(err)
	if got := p.Targets[0].Bytecode; got != "timestamp" {
		t.Errorf("the plan says %s", got)
	}
	apply(t, l, p, "night")
	if got := v.run(askSwitch, prefix); got != "True" {
		t.Errorf("patched code says %s", got)
	}
	revert(t, l, "night")
	if got := v.run(askSwitch, prefix); got != "False" {
		t.Errorf("restored code says %s", got)
	}
}

func TestCacheFile(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]bool{
		"switch.cpython-311.pyc": true, "switch.cpython-311.opt-2.pyc": true, "switch.pyc": false, "switcher.cpython-311.pyc": false,
		"switch.cpython-311.pyc.140": false, "other.cpython-311.pyc": false, "switch..pyc": false,
	} {
		if got := cacheFile("switch", name); got != is {
			t.Errorf("%s: %v", name, got)
		}
	}
}
