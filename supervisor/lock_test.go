package supervisor

import (
	"errors"
	"os"
	"testing"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
)

// A logout removes $XDG_RUNTIME_DIR with the locks in it, and another login has
// another: a launch that lives is not dead of that, and its name stays its own.
func TestLaunchWithoutItsLock(t *testing.T) {
	t.Setenv("SGLAUNCH_STATE", t.TempDir())
	t.Setenv("SGLAUNCH_RUNTIME", t.TempDir())
	dir, err := statedir.Open()
	if err != nil {
		t.Fatal(err)
	}
	self, err := proc.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	shim := &wire.Hello{PID: self.PID, Start: self.Start}
	s := Setup{Name: "glm", State: dir, Argv: []string{"true"}}
	began := time.Now()
	lives := record(t, s, shim, began)
	ended := record(t, s, &wire.Hello{PID: self.PID, Start: self.Start + 1}, began.Add(time.Second)) // of a shim that is no more

	if o := Find(dir, "glm"); o.Shim != self.ID {
		t.Errorf("found %+v", o)
	}
	if all, err := Living(dir); err != nil || len(all) != 1 || all[0].Name != "glm" {
		t.Errorf("living: %+v, %v", all, err)
	}
	if _, err := takeName(s, &wire.Hello{PID: 1, Start: 1}); !errors.Is(err, ErrAlreadyRunning) {
		t.Errorf("another takes its name: %v", err)
	}
	lock, err := takeName(s, shim)
	if err != nil {
		t.Fatalf("its own supervisor does not get its name: %v", err)
	}
	if err := errors.Join(lock.Close(), os.Remove(lockPath(dir, "glm"))); err != nil {
		t.Fatal(err)
	}

	lives.record.Ended, ended.record.Ended = time.Now(), time.Now()
	if err := errors.Join(lives.record.write(lives.Record()), ended.record.write(ended.Record())); err != nil {
		t.Fatal(err)
	}
	if o := Find(dir, "glm"); o.Shim.PID != 0 {
		t.Errorf("one that has ended is found as %+v", o)
	}
}

// record makes the folder and the record of a launch.
func record(t *testing.T, s Setup, shim *wire.Hello, at time.Time) *launch {
	t.Helper()
	made, err := s.State.NewLaunch(s.Name, at)
	if err != nil {
		t.Fatal(err)
	}
	l := &launch{Launch: made, record: newLaunchRecord(made, shim, s, at)}
	if err := l.record.write(made.Record()); err != nil {
		t.Fatal(err)
	}
	return l
}
