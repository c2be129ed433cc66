package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor/machine"
)

// stateDir is a state directory of a test's own.
func stateDir(t *testing.T) statedir.Dir {
	t.Helper()
	t.Setenv("SGLAUNCH_STATE", filepath.Join(t.TempDir(), "state"))
	dir, err := statedir.Open()
	must(t, err)
	return dir
}

// leftBehind writes the record of a launch that has no end yet.
func leftBehind(t *testing.T, dir statedir.Dir, name string, shim wire.Proc, boot string) statedir.Launch {
	t.Helper()
	l, err := dir.NewLaunch(name, time.Now())
	must(t, err)
	r := LaunchRecord{V: 1, ID: l.ID, Name: name, Time: time.Now(), Boot: boot, Shim: shim}
	must(t, r.write(l.Record()))
	return l
}

// deadProcess is a process that has been: its pid may be used again.
func deadProcess(t *testing.T) wire.Proc {
	t.Helper()
	c := exec.Command("true")
	must(t, c.Start())
	start, err := proc.StartTimeOf(c.Process.Pid)
	must(t, err)
	must(t, c.Wait())
	return wire.Proc{PID: c.Process.Pid, Start: start}
}

// member is a living process that the first attempt of a launch has recorded. How it
// ends comes through the channel.
func member(t *testing.T, l statedir.Launch) (p proc.Proc, gone chan error) {
	t.Helper()
	c := exec.Command("sleep", "1000")
	must(t, c.Start())
	gone = make(chan error, 1)
	go func() { gone <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() })
	p, err := proc.Identify(c.Process.Pid)
	must(t, err)
	line, err := json.Marshal(proc.RecordOf(p))
	must(t, err)
	must(t, os.MkdirAll(l.Attempt(1).Path, 0o700))
	must(t, os.WriteFile(l.Attempt(1).Processes(), append(line, '\n'), 0o600))
	return p, gone
}

func TestRecoverWritesTheEndOfDeadLaunches(t *testing.T) {
	dir := stateDir(t)
	start, err := proc.StartTimeOf(os.Getpid())
	must(t, err)
	me := wire.Proc{PID: os.Getpid(), Start: start}
	launches := map[string]statedir.Launch{
		"dead":    leftBehind(t, dir, "dead", deadProcess(t), proc.BootID()),
		"reused":  leftBehind(t, dir, "reused", wire.Proc{PID: os.Getpid(), Start: start + 1}, proc.BootID()),
		"reboot":  leftBehind(t, dir, "reboot", me, "another boot"),
		"running": leftBehind(t, dir, "running", me, proc.BootID()),
	}
	for name, l := range launches {
		if Killed(dir, l) != (name != "running") {
			t.Errorf("%s: killed is %t", name, Killed(dir, l))
		}
	}
	_, err = Recover(t.Context(), dir)
	must(t, err)
	db, err := history.Open(t.Context(), dir.History())
	must(t, err)
	defer db.Close()
	for name, l := range launches {
		r, err := ReadLaunchRecord(l.Record())
		must(t, err)
		told, err := db.Launch(t.Context(), l.ID)
		if name == "running" {
			if !r.Ended.IsZero() || err == nil {
				t.Errorf("a running launch was ended: %+v, %v", r, err)
			}
			continue
		}
		if Killed(dir, l) || r.Ended.IsZero() || r.Code != machine.CodeLater || r.Reason != history.KilledReason {
			t.Errorf("%s: launch.json says %+v", name, r)
		}
		if err != nil || told.Code == nil || *told.Code != machine.CodeLater || told.Reason != history.KilledReason {
			t.Errorf("%s: the history says %+v, %v", name, told, err)
		}
	}
	before, err := os.ReadFile(launches["dead"].Record())
	must(t, err)
	_, err = Recover(t.Context(), dir)
	must(t, err)
	if after, _ := os.ReadFile(launches["dead"].Record()); string(after) != string(before) {
		t.Errorf("a second recovery changed the record:\n%s%s", before, after)
	}
}

// A launch that ended with a process that would not go is looked at again: by now it
// may go. How the launch ended stays as it was.
func TestRecoverLooksForWhatWouldNotGo(t *testing.T) {
	dir := stateDir(t)
	l := leftBehind(t, dir, "held", deadProcess(t), proc.BootID())
	record, err := ReadLaunchRecord(l.Record())
	must(t, err)
	record.Ended, record.Code, record.Reason = time.Now(), machine.CodeHeld, "a process would not go"
	must(t, record.write(l.Record()))
	_, gone := member(t, l)

	healed, err := Recover(t.Context(), dir)
	must(t, err)
	if len(healed) != 1 || healed[0].Launch != l.ID || healed[0].Killed != 1 || len(healed[0].Left) > 0 {
		t.Errorf("healed %+v", healed)
	}
	if err := <-gone; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the process ended with %v", err)
	}
	if after, err := ReadLaunchRecord(l.Record()); err != nil || after.Code != machine.CodeHeld || after.Reason != record.Reason {
		t.Errorf("launch.json says %+v, %v", after, err)
	}
	if healed, err = Recover(t.Context(), dir); err != nil || len(healed) > 0 {
		t.Errorf("once more: %+v, %v", healed, err)
	}
}

// The end of a launch whose disk failed is known all the same, and comes into its
// record once that can be written.
func TestRecoverBringsTheEndHome(t *testing.T) {
	dir := stateDir(t)
	l := leftBehind(t, dir, "failed", deadProcess(t), proc.BootID())
	record, err := ReadLaunchRecord(l.Record())
	must(t, err)
	record.Ended, record.Code, record.Reason = time.Now(), machine.CodePatch, "a file was not restored"
	must(t, os.Remove(l.Record()))
	must(t, os.Mkdir(l.Record(), 0o700)) // as good as a disk that fails, for everybody
	must(t, os.WriteFile(filepath.Join(l.Record(), "x"), nil, 0o600))
	must(t, record.leaveEnd(dir, l))
	if r, err := readRecord(dir, l); err != nil || r.Reason != record.Reason || Killed(dir, l) {
		t.Errorf("while the disk fails: %+v, %v", r, err)
	}
	must(t, os.RemoveAll(l.Record()))
	_, err = Recover(t.Context(), dir)
	must(t, err)
	if r, err := ReadLaunchRecord(l.Record()); err != nil || r.Code != record.Code || r.Reason != record.Reason {
		t.Errorf("launch.json says %+v, %v", r, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir.Runtime, "*.end")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A start removes what is beyond [log] keep, of ended launches alone.
func TestTidyKeepsTheNewest(t *testing.T) {
	dir := stateDir(t)
	start, err := proc.StartTimeOf(os.Getpid())
	must(t, err)
	running := leftBehind(t, dir, "a", wire.Proc{PID: os.Getpid(), Start: start}, proc.BootID())
	var ended []statedir.Launch
	for range 4 {
		l := leftBehind(t, dir, "a", deadProcess(t), proc.BootID())
		ended = append(ended, l)
	}
	_, err = Recover(t.Context(), dir)
	must(t, err)
	var said []string
	s := Setup{State: dir, Settings: Settings{Keep: history.Keep{Launches: 2}}}
	s.tidy(time.Minute, func(text string) { said = append(said, text) })
	if len(said) > 0 {
		t.Error(said)
	}
	left, err := dir.Launches("")
	must(t, err)
	want := []string{running.ID, ended[2].ID, ended[3].ID}
	if len(left) != len(want) {
		t.Fatalf("%v are left, want %v", left, want)
	}
	for i := range want {
		if left[i].ID != want[i] {
			t.Errorf("%v are left, want %v", left, want)
		}
	}
	Setup{State: dir}.tidy(time.Minute, func(string) { t.Error("nothing to keep, nothing to say") })
}

// Of a launch whose record is damaged nobody can say whether it lives: its
// processes are told and left alone.
func TestRecoverTellsOfADamagedRecord(t *testing.T) {
	dir := stateDir(t)
	l := leftBehind(t, dir, "damaged", deadProcess(t), proc.BootID())
	must(t, os.WriteFile(l.Record(), []byte(`{"v":`), 0o600))
	healed, err := Recover(t.Context(), dir)
	must(t, err)
	if len(healed) > 0 {
		t.Errorf("nobody lives, and it is told: %+v", healed)
	}
	p, _ := member(t, l)
	healed, err = Recover(t.Context(), dir)
	must(t, err)
	want := fmt.Sprintf("process %d (", p.PID)
	if len(healed) != 1 || healed[0].Launch != l.ID || healed[0].Killed > 0 || !strings.Contains(healed[0].Err, want) {
		t.Errorf("healed %+v, want %s", healed, want)
	}
	if !proc.Alive(p.ID) {
		t.Error("it was ended")
	}
}
