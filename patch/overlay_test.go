package patch

import (
	"os"
	"testing"
)

func overlayOn() Patch {
	p := switchOn()
	p.Method = MethodOverlay
	return p
}

// spawned asks in the parent and in a child started by spawn, as SGLang's ranks are.
const spawned = `
import multiprocessing, os, sys
from tiny.core.switch import Switch
def ask(q):
    from tiny.core.switch import Switch
    q.put(Switch().on())
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    q = context.Queue()
    p = context.Process(target=ask, args=(q,))
    p.start()
    import tiny.core.switch, inspect
    print(Switch().on(), q.get(), os.path.basename(os.path.dirname(tiny.core.switch.__file__)), "return True" in inspect.getsource(Switch.on))
    p.join()
`

func TestOverlayReachesEveryChildAndTouchesNothing(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	hidden := t.TempDir() // a PYTHONPATH of the person's own, with a sitecustomize on it
	v.write(hidden+"/sitecustomize.py", "import sys\nsys.chained = True\n")
	v.run("import tiny.core.switch")
	script := v.t.TempDir() + "/main.py"
	v.write(script, spawned)
	before := snapshot(t, v.root)
	l := ledger(t)
	in := v.interpreter()
	in.Env = append(in.Env, "PYTHONPATH="+hidden)
	p, err := MakePlan(t.Context(), l, in, []Patch{overlayOn()})
	v.must(err)
	a := apply(t, l, p, "night")
	if len(a.Env) != 1 || len(a.Files) != 1 {
		t.Fatalf("applied %+v", a)
	}
	if got := v.run("import runpy; runpy.run_path('"+script+"', run_name='__main__')", a.Env...); got != "True True core True" {
		t.Errorf("the server says %s", got)
	}
	if got := v.run("import sys; print(sys.chained)", a.Env...); got != "True" {
		t.Errorf("the hidden sitecustomize says %s", got)
	}
	same(t, before, snapshot(t, v.root))
	revert(t, l, "night")
	if left, err := os.ReadDir(l.path(overlaysName)); err != nil || len(left) > 0 {
		t.Errorf("overlays left: %v, %v", left, err)
	}
}

func TestOverlaysOfTwoLaunches(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	other := overlayOn()
	other.Edits[0].Replace = "return None"
	a := apply(t, l, plan(t, l, v, overlayOn()), "a")
	b := apply(t, l, plan(t, l, v, other), "b")
	if one, two := v.run(askSwitch, a.Env...), v.run(askSwitch, b.Env...); one != "True" || two != "None" {
		t.Errorf("the launches say %s and %s", one, two)
	}
}

// In place under an overlay: ranks that the first launch starts late would find
// a file for which their copy is not good.
func TestInPlaceUnderAnOverlay(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	apply(t, l, plan(t, l, v, overlayOn()), "a")
	owner := someOwner
	owner.Launch = "b"
	_, err := l.Apply(t.Context(), plan(t, l, v, switchOn()), owner)
	wantErr(t, err, ErrLeased)
	revert(t, l, "a")
	apply(t, l, plan(t, l, v, switchOn()), "b")
	// The other way round goes: the copy is good for the file with and without.
	c := apply(t, l, plan(t, l, v, overlayOn()), "c")
	for range 2 {
		if got := v.run(askSwitch, append(c.Env, "PYTHONDONTWRITEBYTECODE=1")...); got != "True" {
			t.Errorf("the launch says %s", got)
		}
		revert(t, l, "b")
	}
}

func TestOverlayOfAChangedPackage(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	a := apply(t, l, plan(t, l, v, overlayOn()), "a")
	v.write(v.path("tiny/core/switch.py"), "class Switch:\n    def on(self):\n        return 7\n")
	got := v.run("try:\n    import tiny.core.switch\nexcept ImportError as e:\n    print('changed since' in str(e))", a.Env...)
	if got != "True" {
		t.Errorf("the server says %s", got)
	}
}

func TestOverlayNeedsTheEnvironment(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	in := v.interpreter()
	in.Flags = []string{"-I"}
	p, err := MakePlan(t.Context(), nil, in, []Patch{overlayOn()})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Targets[0].Refused {
		t.Errorf("target is %+v", p.Targets[0])
	}
}

func TestOverlayOnAReadOnlyTree(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	mountReadOnly(t, v.root)
	l := ledger(t)
	if got := plan(t, l, v, switchOn()).Targets[0]; !got.Refused || got.Hint == "" {
		t.Errorf("in place on a read-only tree: %+v", got)
	}
	a := apply(t, l, plan(t, l, v, overlayOn()), "a")
	if got := v.run(askSwitch, a.Env...); got != "True" {
		t.Errorf("the server says %s", got)
	}
}
