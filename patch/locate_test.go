package patch

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// T21 and all plans: looking never imports the package or its parents.
func TestLookingImportsNothing(t *testing.T) {
	t.Parallel()
	v := newVenv(t)
	v.install("tiny", "1.2.0", map[string]string{
		"tiny/__init__.py":      "raise SystemExit('imported')\n",
		"tiny/core/__init__.py": "raise SystemExit('imported')\n",
		"tiny/core/switch.py":   tiny["tiny/core/switch.py"],
	})
	if got := plan(t, nil, v, switchOn()).Targets[0]; got.State != Pristine {
		t.Errorf("target is %+v", got)
	}
}

// T22: a compiled module beside the source is what runs.
func TestCompiledModuleBesideTheSource(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	suffix := v.run("import importlib.machinery; print(importlib.machinery.EXTENSION_SUFFIXES[0])")
	v.write(v.path("tiny/core/switch"+suffix), "")
	got := plan(t, nil, v, switchOn()).Targets[0]
	if !got.Refused || !strings.Contains(got.Reason, suffix) {
		t.Errorf("target is %+v", got)
	}
}

// T23: a package in two portions: the order of sys.path decides, so we do not.
func TestNamespaceInTwoPortions(t *testing.T) {
	t.Parallel()
	v := newVenv(t)
	v.write(v.path("tiny/core/switch.py"), tiny["tiny/core/switch.py"])
	in := v.interpreter()
	v.write(in.Dir+"/tiny/core/other.py", "")
	p, err := MakePlan(t.Context(), nil, in, []Patch{switchOn()})
	v.must(err)
	if got := p.Targets[0]; !got.Refused || !strings.Contains(got.Reason, "spread over") {
		t.Errorf("target is %+v", got)
	}
}

// T24: a folder in the working directory hides the installed package, for the
// server as for us.
func TestShadowedByTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	in := v.interpreter()
	v.write(in.Dir+"/tiny/__init__.py", "")
	p, err := MakePlan(t.Context(), nil, in, []Patch{switchOn()})
	v.must(err)
	if got := p.Targets[0]; got.State != Missing || !got.Refused {
		t.Errorf("target is %+v", got)
	}
	in.Path0 = "-" // a server that is started without its folder on the path finds the installed one
	p, err = MakePlan(t.Context(), nil, in, []Patch{switchOn()})
	v.must(err)
	if got := p.Targets[0]; got.State != Pristine {
		t.Errorf("target is %+v", got)
	}
}

// An editable install, as in the official images: no RECORD lists the file, the
// anchors decide.
func TestEditableInstall(t *testing.T) {
	t.Parallel()
	v := newVenv(t)
	v.install("tiny", "1.2.0", nil)
	tree := t.TempDir()
	for name, text := range tiny {
		v.write(tree+"/python/"+name, text)
	}
	v.write(tree+"/python/tiny/core/__init__.py", "")
	v.write(v.path("__editable__.tiny.pth"), tree+"/python\n")
	v.write(v.path("tiny-1.2.0.dist-info/direct_url.json"), `{"url": "file:///x", "dir_info": {"editable": true}}`)
	before := snapshot(t, tree)
	l := ledger(t)
	p := plan(t, l, v, switchOn())
	if got := p.Targets[0]; got.State != Pristine || !strings.HasPrefix(got.Path, tree) || !strings.Contains(strings.Join(got.Notes, " "), "editable") {
		t.Fatalf("target is %+v", got)
	}
	apply(t, l, p, "night")
	if got := v.run(askSwitch, "PYTHONDONTWRITEBYTECODE=1"); got != "True" {
		t.Errorf("patched code says %s", got)
	}
	revert(t, l, "night")
	same(t, before, snapshot(t, tree))
}

// T20: what is not Python to the server's interpreter is found in the plan, not
// in eight ranks after five minutes of weights.
func TestResultThatIsNotPython(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	before := snapshot(t, v.root)
	bad := switchOn()
	bad.Edits[0].Replace = "return True)"
	other := twoFiles()[1]
	bad.OnRefused = RefusedUnpatched
	l := ledger(t)
	p := plan(t, l, v, bad, other)
	if got := p.Targets[0]; !got.Refused || !strings.Contains(got.Reason, "SyntaxError") {
		t.Errorf("target is %+v", got)
	}
	same(t, before, snapshot(t, v.root))
	a := apply(t, l, p, "night") // the other one is used
	if len(a.Files) != 1 || a.Files[0] != v.path("tiny/other.py") {
		t.Errorf("applied %+v", a)
	}
	revert(t, l, "night")
	bad.OnRefused = RefusedAbort
	_, err := l.Apply(t.Context(), plan(t, l, v, bad, other), someOwner)
	wantErr(t, err, ErrRefused)
	same(t, before, snapshot(t, v.root))
}

// Two patches of one file are one change of it.
func TestTwoPatchesOfOneFile(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	before := snapshot(t, v.root)
	second := Patch{Name: "second", Module: "tiny.core.switch", Edits: []Edit{{Find: "'tiny'", Replace: "'small'", Within: "def name"}}}
	l := ledger(t)
	p := plan(t, l, v, switchOn(), second)
	if p.Targets[0].After != p.Targets[1].After || len(p.Refused()) > 0 {
		t.Errorf("targets are %+v", p.Targets)
	}
	apply(t, l, p, "night")
	if got := v.run("import tiny.core.switch as s; print(s.Switch().on(), s.name())", "PYTHONDONTWRITEBYTECODE=1"); got != "True small" {
		t.Errorf("patched code says %s", got)
	}
	revert(t, l, "night")
	same(t, before, snapshot(t, v.root))

	meets := Patch{Name: "meets", Module: "tiny.core.switch", Edits: []Edit{{Find: "return False", Replace: "return None"}}}
	if got := plan(t, l, v, switchOn(), meets).Targets[1]; !got.Refused {
		t.Errorf("a patch of what another one changed: %+v", got)
	}
}

// A caller that knows no more than the python gets what "python -m" would find
// from its own folder.
func TestInterpreterAlone(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	p, err := MakePlan(t.Context(), nil, Interpreter{Python: v.python()}, []Patch{switchOn()})
	v.must(err)
	if got := p.Targets[0]; got.State != Pristine {
		t.Errorf("target is %+v", got)
	}
	w, err := Interpreter{Python: v.python()}.locate(t.Context(), question{Packages: []string{"python"}})
	v.must(err)
	here, err := os.Getwd()
	v.must(err)
	if got := w.Packages["python"].Locations; len(got) != 1 || got[0] != here+"/python" {
		t.Errorf("the folder beside this test is found at %q", got)
	}
}

// Interpreters that are none, hang or talk too much are errors with a cause.
func TestBadInterpreters(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	for name, script := range map[string]string{
		"fails":   "echo broken >&2; exit 3",
		"mumbles": "echo hello",
		"lies":    `printf '\n\036[1,2]\n'`,
		"babbles": "yes",
	} {
		path := t.TempDir() + "/python"
		v.write(path, "#!/bin/sh\n"+script+"\n")
		v.must(os.Chmod(path, 0o755))
		if _, err := MakePlan(t.Context(), nil, Interpreter{Python: path, Dir: "/"}, []Patch{switchOn()}); err == nil {
			t.Errorf("one that %s is believed", name)
		} else if name == "fails" && !strings.Contains(err.Error(), "broken") {
			t.Errorf("its last words are missing: %v", err)
		}
	}
}

// Code that prints while the interpreter starts does not spoil the answer.
func TestChattyStartup(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	v.write(v.path("chatty.pth"), "import sys; sys.stdout.write('hello\\n')\n")
	if got := plan(t, nil, v, switchOn()).Targets[0]; got.State != Pristine {
		t.Errorf("target is %+v", got)
	}
}

// A source tree in which somebody works is left to them.
func TestUncommittedChanges(t *testing.T) {
	t.Parallel()
	v := newVenv(t)
	tree := t.TempDir()
	for name, text := range tiny {
		v.write(tree+"/"+name, text)
	}
	v.write(tree+"/tiny/core/__init__.py", "")
	v.write(v.path("tiny.pth"), tree+"\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x"}} {
		cmd := exec.Command("git", append([]string{"-C", tree}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("no git here: %v: %s", err, out)
			return
		}
	}
	if got := plan(t, nil, v, switchOn()).Targets[0]; got.Refused {
		t.Errorf("a clean tree: %+v", got)
	}
	v.write(tree+"/tiny/core/switch.py", tiny["tiny/core/switch.py"]+"# mine\n")
	if got := plan(t, nil, v, switchOn()).Targets[0]; !got.Refused || !strings.Contains(got.Reason, "committed") {
		t.Errorf("a tree with changes: %+v", got)
	}
}

func TestOtherFilesThatDiffer(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	v.write(v.path("tiny/other.py"), "x = 1234\n")
	notes := strings.Join(plan(t, nil, v, switchOn()).Targets[0].Notes, "\n")
	if !strings.Contains(notes, "1 other files of tiny differ") {
		t.Errorf("notes are %q", notes)
	}
}

// uv holds a lock on the environment while it installs: we wait for it.
func TestWaitsForUv(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	v.write(v.root+"/.lock", "")
	uv := flock.New(v.root + "/.lock")
	v.must(uv.Lock())
	l := ledger(t)
	p := plan(t, l, v, switchOn())
	before := snapshot(t, v.root)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := l.Apply(ctx, p, someOwner)
	wantErr(t, err, context.DeadlineExceeded)
	same(t, before, snapshot(t, v.root))
	v.must(uv.Unlock())
	apply(t, l, p, "night")
	revert(t, l, "night")
	same(t, before, snapshot(t, v.root))
}
