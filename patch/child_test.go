package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// childRole makes the test binary run one role instead of the tests: a process
// of its own that can be killed, or that runs as another user.
const childRole = "SGLAUNCH_PATCH_CHILD"

// childArgs is what a child is told.
type childArgs struct {
	State   string // ledger
	Python  string
	Dir     string
	Patches []Patch
	Launch  string
	KillAt  int // the disk call at which the child kills itself; 0 = never
}

// runChild plays a role and returns the exit status.
func runChild(role string) int {
	var args childArgs
	err := json.Unmarshal([]byte(os.Getenv(childRole+"_ARGS")), &args)
	if err == nil {
		err = args.play(role)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func (a childArgs) play(role string) error {
	ctx := context.Background()
	l, err := OpenLedger(a.State)
	if err != nil {
		return err
	}
	killer := &faulty{at: a.KillAt, hit: func(string, string) error {
		if err := unix.Kill(os.Getpid(), unix.SIGKILL); err != nil {
			return err
		}
		select {} // the signal is on its way
	}}
	l.disk = killer
	switch role {
	case "apply":
		in := Interpreter{Python: a.Python, Dir: a.Dir, Env: []string{"PATH=/usr/bin:/bin"}}
		p, err := MakePlan(ctx, l, in, a.Patches)
		if err != nil {
			return err
		}
		owner := someOwner
		owner.Launch = a.Launch
		_, err = l.Apply(ctx, p, owner)
		return err
	case "revert":
		_, err = l.Revert(ctx, a.Launch)
		return err
	case "recover":
		_, err = l.Recover(ctx, dead)
		return err
	}
	return fmt.Errorf("no role %q", role)
}

// child runs a role in a process of its own and returns how it ended.
func child(t *testing.T, role string, args childArgs, attr *syscall.SysProcAttr) (killed bool, out string) {
	t.Helper()
	packed, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if attr != nil {
		self = copyOf(t, self) // the build's folder is its user's alone
	}
	cmd := exec.Command(self)
	cmd.Dir = args.Dir
	cmd.Env = []string{childRole + "=" + role, childRole + "_ARGS=" + string(packed), "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = attr
	text, err := cmd.CombinedOutput()
	if err == nil {
		return false, ""
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return true, ""
	}
	return false, strings.TrimSpace(string(text)) + " (" + err.Error() + ")"
}

// parrot is a python that gives the answers of a real one, fast: what is tried
// with it many times is not the interpreter.
func (st *stage) parrot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	answer := func(name string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		st.v.write(filepath.Join(dir, name), "\n\x1e"+string(text)+"\n")
	}
	answer("where", st.where)
	answer("check", make([]string, 4))
	script := filepath.Join(dir, "python")
	st.v.write(script, "#!/bin/sh\ncase \"$1\" in -I) cat >/dev/null; cat "+dir+"/check;; *) cat "+dir+"/where;; esac\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	return script
}

// A process is killed at every disk call of apply, and of revert, and of the
// recovery after each: what the next recovery finds ends as it was before.
func TestKilledAtEveryCall(t *testing.T) {
	t.Parallel()
	st := newStage(t, fastDir(t), fastDir(t))
	args := childArgs{State: st.dir, Python: st.parrot(t), Dir: t.TempDir(), Patches: twoFiles(), Launch: someOwner.Launch}
	for _, role := range []string{"apply", "revert"} {
		for k := 1; ; k++ {
			if role == "revert" {
				if err := st.apply(st.ledger(t, osDisk{})); err != nil {
					t.Fatal(err)
				}
			}
			args.KillAt = k
			killed, out := child(t, role, args, nil)
			if out != "" {
				t.Fatalf("%s killed at %d: %s", role, k, out)
			}
			if killed {
				again := args
				again.KillAt = 1 + k%7 // the recovery dies too, early or late
				if _, out := child(t, "recover", again, nil); out != "" {
					t.Fatalf("recover killed after %s at %d: %s", role, k, out)
				}
			}
			st.recovered(t, role+" killed at call "+strconv.Itoa(k))
			if !killed {
				t.Logf("%s has %d calls", role, k-1)
				break
			}
		}
	}
}

// Another user patches a tree of their own, and is told before anything is
// written that they may not patch somebody else's.
func TestWithoutRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("not root: every other test is this test")
		return
	}
	const nobody = 65534
	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	python, ok := pythonFor(attr)
	if !ok {
		t.Log("every interpreter here lies where only root can reach it")
		return
	}
	root := openDir(t)
	st := newStageIn(t, newVenvOf(t, root, python), filepath.Join(openDir(t), "state"))
	state := filepath.Join(openDir(t), "state")
	args := childArgs{State: state, Python: st.v.python(), Dir: "/", Patches: twoFiles(), Launch: "theirs"}
	if _, out := child(t, "apply", args, attr); !strings.Contains(out, "cannot be written") {
		t.Errorf("a tree of root's: %q", out)
	}
	st.unchanged(t, "a refused apply")

	chownTree(t, root, nobody)
	st.before = snapshot(t, root)
	if _, out := child(t, "apply", args, attr); out != "" {
		t.Fatalf("their own tree: %s", out)
	}
	if got := st.v.run(askSwitch, "PYTHONDONTWRITEBYTECODE=1"); got != "True" {
		t.Errorf("patched code says %s", got)
	}
	if _, out := child(t, "revert", args, attr); out != "" {
		t.Fatal(out)
	}
	st.unchanged(t, "apply and revert as another user")
}

// openDir is a folder that every user reaches.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "patch-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// pythonFor is an interpreter that another user may run.
func pythonFor(attr *syscall.SysProcAttr) (pythonExe, bool) {
	for _, name := range []string{"python3", "/usr/bin/python3", "/usr/local/bin/python3"} {
		python, err := askPython(name)
		if err != nil {
			continue
		}
		cmd := exec.Command(python.Exe, "-c", "")
		cmd.Dir, cmd.SysProcAttr = "/", attr
		if cmd.Run() == nil {
			return python, true
		}
	}
	return pythonExe{}, false
}

func copyOf(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(openDir(t), "test")
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

func chownTree(t *testing.T, root string, uid int) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}
