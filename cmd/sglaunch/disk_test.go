package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// ownDisk mounts a disk of that size as the state directory of launches in dir. It
// reports whether one may be mounted here.
func ownDisk(t *testing.T, dir, size string) (state string, ok bool) {
	t.Helper()
	state = filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "mode=700,size="+size); err != nil {
		t.Logf("no disk of our own can be spoilt here: %v", err)
		return state, false
	}
	t.Cleanup(func() { _ = unix.Unmount(state, unix.MNT_DETACH) })
	return state, true
}

// fillDisk leaves no room on it.
func fillDisk(t *testing.T, state string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(state, "ballast"), make([]byte, 16<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
}

// Where the state directory takes nothing, a launch is refused in one line that says
// what to do, before anything starts, and leaves nothing behind.
func TestRefusedWhereNothingCanBeKept(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, state string){
		"full": fillDisk,
		"read-only": func(t *testing.T, state string) {
			if err := unix.Mount("", state, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			state, ok := ownDisk(t, dir, "1m")
			if !ok {
				return
			}
			launch := func() *launched {
				return startLaunch(t, dir, nil, "run", "--server.name=kept", "--", "touch", "started")
			}
			launch().wait()
			if err := os.Remove(filepath.Join(dir, "started")); err != nil {
				t.Fatal(err)
			}
			spoil(t, state)
			l := launch()
			if code := l.wait(); code != exitConfig {
				t.Errorf("exit code %d", code)
			}
			said := string(l.stderr.bytes())
			if strings.Count(said, "\n") != 1 || strings.Count(said, "sglaunch: ") != 1 || !strings.Contains(said, "set SGLAUNCH_STATE") {
				t.Errorf("it said:\n%s", said)
			}
			if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
				t.Error("the command was run")
			}
			if all, _ := filepath.Glob(filepath.Join(state, "launches", "*")); len(all) != 1 {
				t.Errorf("folders of launches: %q", all)
			}
		})
	}
}

// A folder in which a launch never began is told as that.
func TestStatusOfWhatNeverStarted(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "state", "launches", "20260219T030000.000Z-never-0000", "attempts"), 0o700); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := standing{&launched{t: t}, dir}.sglaunch("status", "never")
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "never started") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

// On a full disk recover does not claim that nothing is left to do.
func TestRecoverThatCannotWrite(t *testing.T) {
	dir := t.TempDir()
	state, ok := ownDisk(t, dir, "1m")
	if !ok {
		return
	}
	b := &box{dir: dir, launched: startLaunch(t, dir, nil, "run", "--server.name=dead", "--", "sleep", "1000")}
	b.await("not recognisably")
	b.strike("all")
	<-b.done
	fillDisk(t, state)
	code, stdout, stderr := standing{b.launched, dir}.sglaunch("recover")
	if code != exitFailed || !strings.Contains(stdout, "no space left") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	if err := os.Remove(filepath.Join(state, "ballast")); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr = (standing{b.launched, dir}).sglaunch("recover"); code != exitOK {
		t.Errorf("with room again: exit code %d:\n%s%s", code, stdout, stderr)
	}
	b.left(storyLimit)
}

// launchOnDisk is a launch whose server lives and whose state directory has a small
// disk of its own; ok is false where none may be mounted.
func launchOnDisk(t *testing.T) (s standing, state string, ok bool) {
	t.Helper()
	dir := t.TempDir()
	if state, ok = ownDisk(t, dir, "1m"); !ok {
		return standing{}, "", false
	}
	s = standing{startLaunch(t, dir, nil, "run", "--server.name=full", "--", "sleep", "1000"), dir}
	s.await("attempt 1: server is process")
	return s, state, true
}

// A disk that fills while a server lives ends nothing. It is told once that events
// are lost, and once more when they are kept again.
func TestDiskFillsWhileItRuns(t *testing.T) {
	s, state, ok := launchOnDisk(t)
	if !ok {
		return
	}
	l := s.launched
	restart := func(attempt string) {
		t.Helper()
		if code, _, stderr := s.sglaunch("restart", "full"); code != exitOK {
			t.Fatalf("restart: exit code %d\n%s", code, stderr)
		}
		l.await("attempt " + attempt + ": server is process")
	}
	fillDisk(t, state)
	restart("2")
	l.await("cannot write the events: ")
	restart("3")
	if err := os.Remove(filepath.Join(state, "ballast")); err != nil {
		t.Fatal(err)
	}
	restart("4")
	l.await("the events are written again")
	l.signal(syscall.SIGTERM)
	if code := l.wait(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	said := string(l.stderr.bytes())
	for _, text := range []string{"cannot write the events: ", "the events are written again"} {
		if strings.Count(said, text) != 1 {
			t.Errorf("%q was not said once:\n%s", text, said)
		}
	}
	if strings.Contains(said, "zerolog") || strings.Contains(said, "the supervisor ended") {
		t.Errorf("it said:\n%s", said)
	}
}

// How a launch ended is written down also where the disk is full: nobody is told
// later that it was killed.
func TestEndOnAFullDisk(t *testing.T) {
	s, state, ok := launchOnDisk(t)
	if !ok {
		return
	}
	l := s.launched
	fillDisk(t, state)
	l.signal(syscall.SIGTERM)
	if code := l.wait(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if st := s.status("full"); st.Exit == nil || st.Exit.Code != exitOK || !strings.Contains(st.Exit.Reason, "SIGTERM") {
		t.Errorf("status %+v", st)
	}
	if code, stdout, stderr := s.sglaunch("recover"); code != exitOK || stdout != "nothing to recover\n" {
		t.Errorf("recover: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// Records that somebody removes while a launch runs are told as gone. Where nothing
// was patched there is nothing that could not be restored.
func TestRecordsRemovedWhileItRuns(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SGLAUNCH_RUNTIME", filepath.Join(dir, "run"))
	l := startLaunch(t, dir, nil, "run", "--server.name=bare", "--", "sleep", "1000")
	l.await("attempt 1: server is process")
	if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := standing{l, dir}.sglaunch("stop", "--wait", "bare")
	if code != 1 || !strings.Contains(stderr, `"bare" has ended; how is not known here`) {
		t.Errorf("stop --wait: exit code %d\n%s", code, stderr)
	}
	if code := l.wait(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if said := string(l.stderr.bytes()); strings.Count(said, "the records of this launch are gone") != 1 || strings.Contains(said, "restored") {
		t.Errorf("it said:\n%s", said)
	}
}

// Whatever became of the records, a supervisor that takes over watches the server
// that lives, and starts no other.
func TestRecordsLostBeforeTheNextSupervisor(t *testing.T) {
	for name, lose := range map[string]func(launch string) error{
		"all":     os.RemoveAll,
		"journal": func(launch string) error { return os.Remove(filepath.Join(launch, "journal.jsonl")) },
		"damaged": func(launch string) error {
			return errors.Join(os.WriteFile(filepath.Join(launch, "journal.jsonl"), nil, 0o600),
				os.WriteFile(filepath.Join(launch, "launch.json"), []byte("{"), 0o600))
		},
		"only begun": func(launch string) error {
			path := filepath.Join(launch, "journal.jsonl")
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, data[:bytes.IndexByte(data, '\n')+1], 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			b := &box{dir: dir, launched: startLaunch(t, dir, nil, "run", "--server.name=bare", "--", "sleep", "1000")}
			b.await("attempt 1: server is process")
			if err := lose(b.launchDir()); err != nil {
				t.Fatal(err)
			}
			b.strike("supervisor")
			b.await("attempt 1 was taken up as it is")
			b.signal(syscall.SIGTERM)
			if code := b.wait(); code != exitOK || strings.Count(string(b.stderr.bytes()), "server is process") != 1 {
				t.Errorf("exit code %d\n%s", code, b.stderr.bytes())
			}
			if code, _, stderr := (standing{b.launched, dir}).sglaunch("status", "bare"); code != exitOK {
				t.Errorf("status: exit code %d\n%s", code, stderr)
			}
			b.left(storyLimit)
		})
	}
}

// A patched file is restored all the same, though another sglaunch has made an empty
// ledger meanwhile, which knows nothing of it.
func TestRecordsRemovedUnderAPatch(t *testing.T) {
	b := openNest(t)
	server := []string{"sh", "-c", nest, "--tp", "1", "--moe-runner-backend", "flashinfer_cutlass"}
	args := append([]string{"run", "-c", filepath.Join(b.dir, "launch.toml"), "--"}, server...)
	b.launched = startLaunch(t, b.dir, b.stage.Env(), args...)
	b.await("server is process")
	if err := os.RemoveAll(filepath.Join(b.dir, "state")); err != nil {
		t.Fatal(err)
	}
	if said := b.heal(); !strings.Contains(said, "nothing to recover") {
		t.Errorf("recover said %q", said)
	}
	b.signal(syscall.SIGTERM)
	if code := b.wait(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, b.stderr.bytes())
	}
	b.await("the records of this launch are gone")
	b.gone(storyLimit)
	if after, err := digestOf(b.stage.Site); err != nil || after != b.before {
		t.Errorf("the package is not what it was: %v", err)
	}
}

// Where nobody is left who knows what was patched, the launch does not end as if all
// were well.
func TestPatchThatNobodyRemembers(t *testing.T) {
	b := openNest(t)
	server := []string{"sh", "-c", nest, "--tp", "1", "--moe-runner-backend", "flashinfer_cutlass"}
	b.launched = startLaunch(t, b.dir, b.stage.Env(), append([]string{"run", "-c", filepath.Join(b.dir, "launch.toml"), "--"}, server...)...)
	b.await("server is process")
	if err := os.RemoveAll(filepath.Join(b.dir, "state")); err != nil {
		t.Fatal(err)
	}
	b.strike("supervisor")
	b.await("attempt 1 was taken up as it is")
	b.signal(syscall.SIGTERM)
	if code := b.wait(); code != exitPatch || !strings.Contains(string(b.stderr.bytes()), "what was patched is not known any more") {
		t.Errorf("exit code %d\n%s", code, b.stderr.bytes())
	}
	b.gone(storyLimit)
}

// A supervisor that dies while the disk is full is followed by one that goes on: the
// server is not left unwatched.
func TestSupervisorDiesOnAFullDisk(t *testing.T) {
	s, state, ok := launchOnDisk(t)
	if !ok {
		return
	}
	b := &box{dir: s.dir, launched: s.launched}
	fillDisk(t, state)
	if code, _, stderr := s.sglaunch("restart", "full"); code != exitOK {
		t.Fatalf("restart: exit code %d\n%s", code, stderr)
	}
	b.await("attempt 2: server is process")
	b.strike("supervisor")
	b.await("supervisor is back")
	b.signal(syscall.SIGTERM)
	if code := b.wait(); code != exitOK || strings.Count(string(b.stderr.bytes()), "server is process") != 2 {
		t.Errorf("exit code %d\n%s", code, b.stderr.bytes())
	}
	b.left(storyLimit)
}

// A supervisor that finds the name of its launch taken leaves the server alone, and
// the next one takes it up.
func TestNameTakenBeforeTheNextSupervisor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := &box{dir: dir, launched: startLaunch(t, dir, nil, "run", "--server.name=theirs", "--", "sleep", "1000")}
	b.await("attempt 1: server is process")
	path := filepath.Join(dir, "state", "run", "theirs.lock")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	theirs := flock.New(path)
	if locked, err := theirs.TryLock(); err != nil || !locked {
		t.Fatalf("locked: %v, %v", locked, err)
	}
	defer theirs.Close()
	b.strike("supervisor")
	b.await(`cannot start "theirs"`)
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	b.await("supervisor is back")
	b.signal(syscall.SIGTERM)
	if code := b.wait(); code != exitOK || strings.Count(string(b.stderr.bytes()), "server is process") != 1 {
		t.Errorf("exit code %d\n%s", code, b.stderr.bytes())
	}
	b.left(storyLimit)
}
