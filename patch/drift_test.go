package patch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// T26: the package is upgraded between apply and revert. The new release stays
// as it is, and the original of the old one is kept and named.
func TestUpgradeInBetween(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	v.must(os.RemoveAll(v.path("tiny-1.2.0.dist-info")))
	v.must(os.RemoveAll(v.path("tiny")))
	newer := map[string]string{"tiny/core/switch.py": strings.Replace(tiny["tiny/core/switch.py"], "'tiny'", "'tiny 2'", 1)}
	v.install("tiny", "2.0.0", newer)
	upgraded := snapshot(t, v.root)

	r, err := l.Revert(t.Context(), "night")
	wantErr(t, err, ErrDrifted)
	if len(r.Drifted) != 1 {
		t.Errorf("reverted %+v", r)
	}
	same(t, upgraded, snapshot(t, v.root))
	held, err := l.Status()
	v.must(err)
	if len(held) != 1 || held[0].State != Drifted || readText(t, held[0].Original) != tiny["tiny/core/switch.py"] {
		t.Errorf("status is %+v", held)
	}

	// The launch is done with it; the new release can be patched and reverted.
	if r := revert(t, l, "night"); len(r.Drifted) > 0 {
		t.Errorf("again %+v", r)
	}
	apply(t, l, plan(t, l, v, switchOn()), "next")
	revert(t, l, "next")
	same(t, upgraded, snapshot(t, v.root))
	nothingHeld(t, l)
}

// The same while the first launch still runs: the second patches the new release,
// and each end finds what it may restore.
func TestUpgradeUnderALaunch(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "old")
	v.install("tiny", "1.2.0", map[string]string{"tiny/core/switch.py": tiny["tiny/core/switch.py"] + "# newer\n"})
	v.must(os.RemoveAll(v.path("tiny/core/__pycache__")))
	upgraded := snapshot(t, v.root)
	apply(t, l, plan(t, l, v, switchOn()), "new")
	revert(t, l, "old")
	revert(t, l, "new")
	same(t, upgraded, snapshot(t, v.root))
}

func TestUninstalledInBetween(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	v.must(os.RemoveAll(v.path("tiny")))
	_, err := l.Revert(t.Context(), "night")
	wantErr(t, err, ErrDrifted)
	if _, err := os.Stat(v.path("tiny")); err == nil {
		t.Error("a revert brought an uninstalled package back")
	}
}

// A reinstall of the same release brings the original back: clean, not drifted.
func TestReinstalledInBetween(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	v.must(os.Remove(v.path("tiny/core/switch.py")))
	v.install("tiny", "1.2.0", tiny)
	installed := snapshot(t, v.root)
	if r := revert(t, l, "night"); len(r.Clean) != 1 {
		t.Errorf("reverted %+v", r)
	}
	same(t, installed, snapshot(t, v.root))
}

func TestChangedSinceThePlan(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	p := plan(t, l, v, twoFiles()...)
	v.write(v.path("tiny/other.py"), "x = 1 \n")
	now := snapshot(t, v.root)
	_, err := l.Apply(t.Context(), p, someOwner)
	wantErr(t, err, ErrChanged)
	same(t, now, snapshot(t, v.root))
}

// A changed mode is a change as well: the revert would bring the old one back.
func TestModeChangedSinceThePlan(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	p := plan(t, l, v, switchOn())
	v.must(os.Chmod(v.path("tiny/core/switch.py"), 0o600))
	now := snapshot(t, v.root)
	_, err := l.Apply(t.Context(), p, someOwner)
	wantErr(t, err, ErrChanged)
	same(t, now, snapshot(t, v.root))
}

// Somebody writes the file while the apply is under way, after it was checked
// and before the new one is in place: theirs stays.
func TestChangedDuringApply(t *testing.T) {
	t.Parallel()
	st := newStage(t, fastDir(t), fastDir(t))
	path := st.v.path("tiny/other.py")
	f := &faulty{at: 1}
	f.hit = func(op, target string) error {
		if op == "create" && strings.HasPrefix(target, st.v.root) { // a new file is being made: the checks are over
			f.at = 0
			return os.WriteFile(path, []byte("x = 'theirs'\n"), 0o644)
		}
		return nil
	}
	wantErr(t, st.apply(st.ledgerOn(t, f)), ErrChanged)
	if got := readText(t, path); got != "x = 'theirs'\n" {
		t.Errorf("the file is %q", got)
	}
	if got := readText(t, st.v.path("tiny/core/switch.py")); got != tiny["tiny/core/switch.py"] {
		t.Errorf("the other file is %q", got)
	}
}

// A file that differs from its release is not patched, unless that is allowed.
func TestLocallyChanged(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	v.write(v.path("tiny/core/switch.py"), tiny["tiny/core/switch.py"]+"# mine\n")
	if got := plan(t, nil, v, switchOn()).Targets[0]; got.State != Drifted || !got.Refused || got.Hint == "" {
		t.Errorf("target is %+v", got)
	}
	allowed := switchOn()
	allowed.AllowChanged = true
	before := snapshot(t, v.root)
	l := ledger(t)
	p := plan(t, l, v, allowed)
	if got := p.Targets[0]; got.State != Pristine || got.Refused {
		t.Errorf("target is %+v", got)
	}
	apply(t, l, p, "night")
	revert(t, l, "night")
	same(t, before, snapshot(t, v.root))
}

// A launch that lives keeps its files, dead ones lose them; anything else would
// give a rank that is spawned late another file than its parent has.
func TestRecoverLeavesTheLiving(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	before := snapshot(t, v.root)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "living")
	patched := snapshot(t, v.root)
	all, err := l.Recover(t.Context(), func(o Owner) bool { return o.Launch == "living" })
	if err != nil || len(all) > 0 {
		t.Errorf("recovered %+v, %v", all, err)
	}
	same(t, patched, snapshot(t, v.root))
	all, err = l.Recover(t.Context(), dead)
	if err != nil || len(all) != 1 || len(all[0].Restored) != 1 {
		t.Errorf("recovered %+v, %v", all, err)
	}
	same(t, before, snapshot(t, v.root))
}

func TestKeptPatch(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	before := snapshot(t, v.root)
	l := ledger(t)
	kept := switchOn()
	kept.Revert = RevertNever
	apply(t, l, plan(t, l, v, kept), "night")
	patched := snapshot(t, v.root)
	if r := revert(t, l, "night"); len(r.Kept) != 1 {
		t.Errorf("reverted %+v", r)
	}
	if _, err := l.Recover(t.Context(), dead); err != nil {
		t.Error(err)
	}
	same(t, patched, snapshot(t, v.root))
	apply(t, l, plan(t, l, v, kept), "next") // the same patch is there: shared
	if r, err := l.RevertKept(t.Context()); err != nil || len(r.Leased) != 1 {
		t.Errorf("reverted under a launch: %+v, %v", r, err)
	}
	revert(t, l, "next")
	if r, err := l.RevertKept(t.Context()); err != nil || len(r.Restored) != 1 {
		t.Errorf("reverted %+v, %v", r, err)
	}
	same(t, before, snapshot(t, v.root))
}

// Launches that come and go at once on one environment, each with a ledger of
// its own process: in the end nothing is left.
func TestManyLaunchesAtOnce(t *testing.T) {
	t.Parallel()
	st := newStage(t, fastDir(t), fastDir(t))
	var all sync.WaitGroup
	for _, launch := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			l, err := OpenLedger(st.dir)
			if err != nil {
				t.Error(err)
				return
			}
			st.deaf(l)
			owner := someOwner
			owner.Launch = launch
			for range 8 {
				if _, err := l.Apply(context.Background(), st.plan, owner); err != nil {
					t.Errorf("%s: %v", launch, err)
				}
				if _, err := l.Revert(context.Background(), launch); err != nil {
					t.Errorf("%s: %v", launch, err)
				}
			}
		})
	}
	all.Wait()
	st.unchanged(t, "all launches")
}

// Two ledgers, as of two users, on one environment: the second finds the patch
// in place, uses it and leaves it.
func TestTwoLedgers(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	before := snapshot(t, v.root)
	one, two := ledger(t), ledger(t)
	apply(t, one, plan(t, one, v, switchOn()), "night")
	p := plan(t, two, v, switchOn())
	if got := p.Targets[0]; got.State != WasApplied || got.Refused {
		t.Errorf("target is %+v", got)
	}
	apply(t, two, p, "other")
	revert(t, two, "other")
	if got := v.run(askSwitch, "PYTHONDONTWRITEBYTECODE=1"); got != "True" {
		t.Error("the second ledger took the patch of the first away")
	}
	revert(t, one, "night")
	same(t, before, snapshot(t, v.root))
}

// A different patch of a running launch is refused at apply too, where the plan
// was made before the other launch began.
func TestLeasedAtApply(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	other := switchOn()
	other.Edits[0].Replace = "return None"
	late := plan(t, l, v, other)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	owner := someOwner
	owner.Launch = "late"
	_, err := l.Apply(t.Context(), late, owner)
	wantErr(t, err, ErrLeased)
}

func TestCancelledApply(t *testing.T) {
	t.Parallel()
	st := newStage(t, t.TempDir(), t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	l := st.ledger(t, osDisk{})
	l.ask = func(context.Context, Interpreter, question) (*whereabouts, error) { cancel(); return nil, ctx.Err() }
	_, err := l.Apply(ctx, st.plan, someOwner)
	wantErr(t, err, context.Canceled)
	st.unchanged(t, "a cancelled apply")
	nothingHeld(t, l)
}

// The journal is lost, the file is patched: nothing is touched, and what was
// kept of the original stays where a person finds it.
func TestLostJournal(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	v.must(os.Remove(l.path(journalName)))
	patched := snapshot(t, v.root)
	if _, err := l.Recover(t.Context(), dead); err != nil {
		t.Error(err)
	}
	same(t, patched, snapshot(t, v.root))
	if kept, err := filepath.Glob(l.path(originalsName, "*")); err != nil || len(kept) == 0 {
		t.Errorf("originals: %v, %v", kept, err)
	}
}

// driftedFile is a patched file that somebody has added to, after its launch's end.
func driftedFile(t *testing.T) (l *Ledger, path, theirs string) {
	t.Helper()
	v := tinyVenv(t)
	path = v.path("tiny/core/switch.py")
	v.must(os.Chmod(path, 0o640))
	l = ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	theirs = readText(t, path) + "# foreign\n"
	v.must(os.WriteFile(path, []byte(theirs), 0o640))
	r, err := l.Revert(t.Context(), "night")
	wantErr(t, err, ErrDrifted)
	original := r.Originals[path]
	if readText(t, original) != tiny["tiny/core/switch.py"] || !strings.Contains(err.Error(), original) {
		t.Errorf("the original is said to be in %q: %v", original, err)
	}
	return l, path, theirs
}

// A person has the last word: bytes and mode come back, and what the other wrote
// is kept.
func TestForcedRevert(t *testing.T) {
	t.Parallel()
	l, path, theirs := driftedFile(t)
	if r, err := l.RevertKept(t.Context()); len(r.Drifted) != 1 {
		t.Errorf("the drift is forgotten: %+v, %v", r, err)
	}
	_, err := l.RevertForced(t.Context(), "nosuch")
	wantErr(t, err, ErrUnknown)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(path, 0o600))
	r, err := l.RevertForced(t.Context(), path)
	must(err)
	if len(r.Restored) != 1 || len(r.Drifted) > 0 || len(r.Aside) != 1 || readText(t, r.Aside[0]) != theirs {
		t.Errorf("reverted %+v", r)
	}
	info, err := os.Stat(path)
	must(err)
	if readText(t, path) != tiny["tiny/core/switch.py"] || info.Mode() != 0o640 {
		t.Errorf("%s is %v, %q", path, info.Mode(), readText(t, path))
	}
	nothingHeld(t, l)
}

// A file that has its original bytes again is no drift any more, whoever brought
// them.
func TestDriftEndsWithTheOriginal(t *testing.T) {
	t.Parallel()
	l, path, _ := driftedFile(t)
	if err := os.WriteFile(path, []byte(tiny["tiny/core/switch.py"]), 0o640); err != nil {
		t.Fatal(err)
	}
	nothingHeld(t, l)
	if _, err := l.Recover(t.Context(), dead); err != nil {
		t.Error(err)
	}
	if b, err := l.read(); err != nil || len(b.Drifts) > 0 {
		t.Errorf("the record stays: %v", err)
	}
}

// Our patched bytes are ours to take back, whoever brought them.
func TestDriftEndsWithThePatch(t *testing.T) {
	t.Parallel()
	l, path, theirs := driftedFile(t)
	patched := strings.TrimSuffix(theirs, "# foreign\n")
	if err := os.WriteFile(path, []byte(patched), 0o640); err != nil {
		t.Fatal(err)
	}
	if held, err := l.Status(); err != nil || len(held) != 1 || held[0].State != WasApplied || held[0].Found != Hash([]byte(patched)) {
		t.Errorf("status is %+v, %v", held, err)
	}
	if all, err := l.Recover(t.Context(), dead); err != nil || len(all) != 1 || len(all[0].Restored) != 1 {
		t.Errorf("recovered %+v, %v", all, err)
	}
	if held, err := l.Status(); err != nil || len(held) > 0 || readText(t, path) != tiny["tiny/core/switch.py"] {
		t.Errorf("status is %+v, %v; the file holds %q", held, err, readText(t, path))
	}
}

// A revert by hand that may do nothing leaves the record of a kept patch as it
// was: the next one judges by the bytes that are there then.
func TestFailedRevertChangesNothing(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	before := snapshot(t, v.root)
	l := ledger(t)
	kept := switchOn()
	kept.Revert = RevertNever
	apply(t, l, plan(t, l, v, kept), "night")
	revert(t, l, "night")
	path := v.path("tiny/core/switch.py")
	patched := readText(t, path)
	for _, theirs := range []string{patched + "# foreign\n", ""} {
		v.must(os.WriteFile(path, []byte(theirs), 0o644))
		want := Drifted
		if theirs == "" {
			v.must(os.Remove(path))
			want = Missing
		}
		for range 2 {
			held, err := l.Status()
			if err != nil || len(held) != 1 || held[0].State != want || !held[0].Kept {
				t.Errorf("status is %+v, %v", held, err)
			}
			r, err := l.RevertKept(t.Context())
			wantErr(t, err, ErrDrifted)
			if len(r.Drifted) != 1 || r.Originals[path] == "" {
				t.Errorf("reverted %+v", r)
			}
		}
	}
	v.must(os.WriteFile(path, []byte(patched), 0o644))
	if r, err := l.RevertKept(t.Context()); err != nil || len(r.Restored) != 1 {
		t.Errorf("reverted %+v, %v", r, err)
	}
	same(t, before, snapshot(t, v.root))
}
