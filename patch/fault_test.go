package patch

import (
	"context"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// faulty is a disk whose n-th call goes wrong.
type faulty struct {
	real osDisk
	at   int // the call that goes wrong, from 1; 0 = none
	done int // calls so far
	hit  func(op, path string) error
}

func (f *faulty) step(op, path string) error {
	bad := f.due()
	f.done++
	if bad {
		return f.hit(op, path)
	}
	return nil
}

// due tells whether the next call goes wrong.
func (f *faulty) due() bool { return f.at > 0 && f.done+1 >= f.at }

func (f *faulty) open(op, path string, open func(string) (handle, error)) (handle, error) {
	if err := f.step(op, path); err != nil {
		return nil, err
	}
	h, err := open(path)
	return faultyHandle{h, f, path}, err
}

func (f *faulty) Create(path string) (handle, error) { return f.open("create", path, f.real.Create) }
func (f *faulty) Append(path string) (handle, error) { return f.open("append", path, f.real.Append) }

func (f *faulty) do(op, path string, real func() error) error {
	if err := f.step(op, path); err != nil {
		return err
	}
	return real()
}

func (f *faulty) Truncate(path string, size int64) error {
	return f.do("truncate", path, func() error { return f.real.Truncate(path, size) })
}
func (f *faulty) Mkdir(path string) error {
	return f.do("mkdir", path, func() error { return f.real.Mkdir(path) })
}
func (f *faulty) Link(from, to string) error {
	return f.do("link", from, func() error { return f.real.Link(from, to) })
}
func (f *faulty) Symlink(target, path string) error {
	return f.do("symlink", path, func() error { return f.real.Symlink(target, path) })
}
func (f *faulty) Rename(from, to string) error {
	return f.do("rename", to, func() error { return f.real.Rename(from, to) })
}
func (f *faulty) Remove(path string) error {
	return f.do("remove", path, func() error { return f.real.Remove(path) })
}
func (f *faulty) Chown(path string, uid, gid uint32) error {
	return f.do("chown", path, func() error { return f.real.Chown(path, uid, gid) })
}
func (f *faulty) Chmod(path string, mode uint32) error {
	return f.do("chmod", path, func() error { return f.real.Chmod(path, mode) })
}
func (f *faulty) SetAttr(path, name string, value []byte) error {
	return f.do("setxattr", path, func() error { return f.real.SetAttr(path, name, value) })
}
func (f *faulty) SetTime(path string, mtime int64) error {
	return f.do("utimensat", path, func() error { return f.real.SetTime(path, mtime) })
}
func (f *faulty) Sync(dir string) error {
	return f.do("fsync", dir, func() error { return f.real.Sync(dir) })
}

// faultyHandle writes half of what it is given when a write goes wrong: that is
// what a full disk and a crash do.
type faultyHandle struct {
	handle
	f    *faulty
	path string
}

func (h faultyHandle) Write(p []byte) (int, error) {
	n := 0
	if h.f.due() {
		n, _ = h.handle.Write(p[:len(p)/2])
	}
	if err := h.f.step("write", h.path); err != nil {
		return n, err
	}
	return h.handle.Write(p)
}

func (h faultyHandle) Sync() error { return h.f.do("fsync", h.path, h.handle.Sync) }

// stage is a package with two files to patch and bytecode of each, a plan made
// once, and a ledger that asks no interpreter: what is tried here is the disk.
type stage struct {
	v      *venv
	dir    string
	plan   *Plan
	where  *whereabouts
	before map[string]picture
	copied bool // the ledger is on another file system: no inode comes back
}

func twoFiles() []Patch {
	other := Patch{Name: "other", Module: "tiny.other", Edits: []Edit{{Find: "x = 1", Replace: "x = 22"}}}
	return []Patch{switchOn(), other}
}

func newStage(t *testing.T, root, state string) *stage {
	t.Helper()
	return newStageIn(t, newVenvAt(t, root), state)
}

func newStageIn(t *testing.T, v *venv, state string) *stage {
	t.Helper()
	v.install("tiny", "1.2.0", tiny)
	v.run("import tiny.core.switch")
	v.age()
	v.run("import tiny.core.switch, tiny.other") // one pyc is of now, one of old
	st := &stage{v: v, dir: state}
	l := st.ledger(t, osDisk{})
	st.plan = plan(t, l, v, twoFiles()...)
	where, err := st.plan.Interpreter.locate(t.Context(), question{Packages: []string{"tiny"}, Modules: []string{"tiny.core.switch", "tiny.other"}})
	if err != nil {
		t.Fatal(err)
	}
	st.where, st.before = where, snapshot(t, v.root)
	return st
}

func (st *stage) ledger(t *testing.T, d disk) *Ledger {
	t.Helper()
	l, err := openLedger(st.dir, d)
	if err != nil {
		t.Fatal(err)
	}
	return st.deaf(l)
}

// deaf makes a ledger take the interpreter's answers from the stage.
func (st *stage) deaf(l *Ledger) *Ledger {
	l.ask = func(context.Context, Interpreter, question) (*whereabouts, error) { return st.where, nil }
	return l
}

// dead is the judge of a machine on which no launch lives.
func dead(Owner) bool { return false }

// recovered recovers and fails unless the tree is what it was.
func (st *stage) recovered(t *testing.T, what string) {
	t.Helper()
	if _, err := st.ledger(t, osDisk{}).Recover(t.Context(), dead); err != nil {
		t.Fatalf("%s: recovery: %v", what, err)
	}
	st.unchanged(t, what)
}

func (st *stage) unchanged(t *testing.T, what string) {
	t.Helper()
	before := t.Failed()
	now := snapshot(t, st.v.root)
	if st.copied {
		st.before, now = withoutInodes(st.before), withoutInodes(now)
	}
	same(t, st.before, now)
	if t.Failed() && !before {
		t.Fatalf("after %s", what)
	}
}

// calls counts how many disk calls a piece of work makes.
func (st *stage) calls(t *testing.T, work func(*Ledger) error) int {
	t.Helper()
	f := &faulty{}
	if err := work(st.ledgerOn(t, f)); err != nil {
		t.Fatal(err)
	}
	return f.done
}

// ledgerOn opens a ledger whose disk counts only from the opening on.
func (st *stage) ledgerOn(t *testing.T, f *faulty) *Ledger {
	l := st.ledger(t, osDisk{})
	l.disk = f
	return l
}

func (st *stage) apply(l *Ledger) error {
	_, err := l.Apply(context.Background(), st.plan, someOwner)
	return err
}

func (st *stage) revert(l *Ledger) error {
	_, err := l.Revert(context.Background(), someOwner.Launch)
	return err
}

var errCrash = errors.New("the machine is gone")

// Every call of apply and of revert fails in turn, with the errors that disks
// give and with a crash after which nothing works any more. Whatever the call,
// the work ends in before or after, and a recovery in before.
func TestEveryCallMayFail(t *testing.T) {
	t.Parallel()
	st := newStage(t, fastDir(t), fastDir(t))
	n := st.calls(t, st.apply)
	m := st.calls(t, st.revert)
	st.unchanged(t, "a round without faults")
	t.Logf("%d calls to apply, %d to revert", n, m)
	for _, fault := range []error{unix.ENOSPC, unix.EIO, errCrash} {
		hit := func(f *faulty) func(op, path string) error {
			return func(op, path string) error {
				if fault != errCrash {
					f.at = 0 // once
				}
				return &os.PathError{Op: op, Path: path, Err: fault}
			}
		}
		for k := 1; k <= n; k++ {
			f := &faulty{at: k}
			f.hit = hit(f)
			err := st.apply(st.ledgerOn(t, f))
			if err != nil && fault != errCrash {
				st.unchanged(t, "a failed apply: "+err.Error())
			}
			st.recovered(t, "recovery of an apply with a fault")
		}
		for k := 1; k <= m; k++ {
			if err := st.apply(st.ledger(t, osDisk{})); err != nil {
				t.Fatal(err)
			}
			f := &faulty{at: k}
			f.hit = hit(f)
			if err := st.revert(st.ledgerOn(t, f)); err == nil {
				st.unchanged(t, "a revert that got over a fault")
			}
			st.recovered(t, "recovery of a revert with a fault")
		}
	}
}
