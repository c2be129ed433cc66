package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/rehearsal"
)

// box is a stage with a launch on it.
type box struct {
	*launched
	dir    string
	stage  *rehearsal.Stage
	before string
}

// openBox starts a patched launch of a scenario.
func openBox(t *testing.T, scenario string, env ...string) *box {
	t.Helper()
	lib, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	s, err := rehearsal.Find(scenario)
	if err != nil {
		t.Fatal(err)
	}
	b := &box{dir: t.TempDir()}
	b.stage, err = rehearsal.Build(filepath.Join(b.dir, "stage"), rehearsal.Options{GPUs: 2, Speed: 40, Shards: 30})
	if err != nil {
		t.Fatal(err)
	}
	b.stage.Lib = lib
	if b.before, err = digestOf(b.stage.Site); err != nil {
		t.Fatal(err)
	}
	port, err := rehearsal.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	toml := filepath.Join(b.dir, "launch.toml")
	if err := os.WriteFile(toml, []byte(story{}.launchTOML()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"run", "-c", toml, "--"}, b.stage.Command(b.stage.Args(2, port)...)...)
	b.launched = startLaunch(t, b.dir, append(b.stage.Env(s), env...), args...)
	return b
}

// supervisorOf finds the living supervisor of a launch.
func (b *box) supervisorOf() proc.Proc {
	b.t.Helper()
	children, err := proc.Descendants(b.cmd.Process.Pid)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range children {
		if p.PPID == b.cmd.Process.Pid && strings.Contains(proc.Command(p), supervisorCommand) {
			return p
		}
	}
	b.t.Fatal("no supervisor is running")
	return proc.Proc{}
}

// server is the process that the newest "server is process N" names.
func (b *box) server() int {
	b.t.Helper()
	all := regexp.MustCompile(`server is process (\d+)`).FindAllSubmatch(b.stderr.bytes(), -1)
	if len(all) == 0 {
		b.t.Fatal("no server was told")
	}
	pid, err := strconv.Atoi(string(all[len(all)-1][1]))
	if err != nil {
		b.t.Fatal(err)
	}
	return pid
}

// gone waits until no process of the stage lives, for at most limit.
func (b *box) gone(limit time.Duration) {
	b.t.Helper()
	b.none("SGLAUNCH_REHEARSAL_STATE="+b.stage.State, limit)
}

// none waits until no process has the marker in its environment.
func (b *box) none(marker string, limit time.Duration) {
	b.t.Helper()
	for deadline := time.Now().Add(limit); ; {
		left, err := proc.WithMarker(marker)
		if err != nil {
			b.t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("after %s still alive: %v\n%s", limit, left, b.stderr.bytes())
		}
		time.Sleep(20 * time.Millisecond) // the pause of a poll
	}
}

func (b *box) unchanged() {
	b.t.Helper()
	after, err := digestOf(b.stage.Site)
	if err != nil {
		b.t.Fatal(err)
	}
	if after != b.before {
		b.t.Errorf("the package changed:\n%s", lineDiff(b.before, after))
	}
}

func (b *box) launchDir() string {
	b.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(b.dir, "state", "launches", "*"))
	if err != nil || len(dirs) != 1 {
		b.t.Fatalf("launches %v, %v", dirs, err)
	}
	return dirs[0]
}

// observed counts the facts that the journal holds from the output, by place.
func (b *box) observed() map[string]int {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.launchDir(), "journal.jsonl"))
	if err != nil {
		b.t.Fatal(err)
	}
	seen := map[string]int{}
	for _, line := range strings.Split(string(data), "\n") {
		var e struct {
			Step struct {
				Event string
				Body  struct {
					Offset int64
					Rule   string
					Kind   string
					Done   int64
				}
			}
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Step.Event == "seen" {
			o := e.Step.Body
			seen[fmt.Sprintf("%d %s %s %d", o.Offset, o.Kind, o.Rule, o.Done)]++
		}
	}
	return seen
}

// kill -9 of the supervisor, while the server loads and while it serves: the
// server does not notice, the next supervisor knows all, no line is lost or
// counted twice.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	b := openBox(t, "healthy")
	b.await(`loading_weights \(`)
	server := b.server()
	first := b.supervisorOf()
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	b.await(`supervisor is back \(restart 1\)`)
	if took := time.Since(killed); took > 5*time.Second { // a second on a box that does nothing else
		t.Errorf("the supervisor was back after %s", took)
	}
	b.await(readyLine)
	second := b.supervisorOf()
	if err := syscall.Kill(second.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.await(`supervisor is back \(restart 2\)`)
	if b.server() != server {
		t.Errorf("another server runs: %d, not %d", b.server(), server)
	}
	b.signal(syscall.SIGTERM)
	if code := b.wait(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, b.stderr.bytes())
	}
	b.gone(time.Second)
	b.unchanged()
	b.checkOutput(filepath.Join(b.dir, "state"))
	for what, n := range b.observed() {
		if n != 1 {
			t.Errorf("%q is in the journal %d times", what, n)
		}
	}
	b.replays()
}

// A stop that reaches the shim while its supervisor hangs and dies, or while none
// lives, is heard by the next one; and none is heard twice, which would end the
// server less gently.
func TestStopReachesTheNextSupervisor(t *testing.T) {
	for name, loseSupervisor := range map[string]func(b *box, stop func()){
		"hangs and dies": func(b *box, stop func()) {
			deaf := b.supervisorOf()
			if err := syscall.Kill(deaf.PID, syscall.SIGSTOP); err != nil {
				b.t.Fatal(err)
			}
			stop()
			b.delivered(syscall.SIGTERM)
			if err := syscall.Kill(deaf.PID, syscall.SIGKILL); err != nil {
				b.t.Fatal(err)
			}
		},
		"hangs for good": func(b *box, stop func()) {
			if err := syscall.Kill(b.supervisorOf().PID, syscall.SIGSTOP); err != nil {
				b.t.Fatal(err)
			}
			stop()
			b.await("the supervisor is given up: it has answered nothing for 10s")
		},
		"has heard it and dies": func(b *box, stop func()) {
			first := b.supervisorOf()
			stop()
			b.await("stopping: SIGTERM")
			_ = syscall.Kill(first.PID, syscall.SIGKILL) // the end may be there already
		},
		"is dead": func(b *box, stop func()) {
			for deaths := 1; deaths <= 3; deaths++ { // the third is replaced only after a pause
				if err := syscall.Kill(b.supervisorOf().PID, syscall.SIGKILL); err != nil {
					b.t.Fatal(err)
				}
				b.await(fmt.Sprintf(`(it is started again[^$]*){%d}`, deaths))
				if deaths < 3 {
					b.await(fmt.Sprintf(`supervisor is back \(restart %d\)`, deaths))
				}
			}
			stop()
		},
	} {
		for _, moment := range []string{`loading_weights \(`, readyLine} {
			t.Run(name+", "+moment, func(t *testing.T) {
				t.Parallel()
				b := openBox(t, "healthy")
				b.await(moment)
				loseSupervisor(b, func() { b.signal(syscall.SIGTERM) })
				if code := b.wait(); code != exitOK {
					t.Errorf("exit code %d\n%s", code, b.stderr.bytes())
				}
				journal, err := os.ReadFile(filepath.Join(b.launchDir(), "journal.jsonl"))
				if n := strings.Count(string(journal), `"event":"stop_asked"`); n != 1 || err != nil {
					t.Errorf("the stop was heard %d times, %v\n%s", n, err, b.stderr.bytes())
				}
				b.gone(time.Second)
				b.unchanged()
				b.replays()
			})
		}
	}
}

// The third ask ends the server at once, whatever became of the supervisor; and the
// next one knows that it was asked for.
func TestThirdAskNeedsNoSupervisor(t *testing.T) {
	t.Parallel()
	b := openBox(t, "healthy")
	b.await(readyLine)
	server, err := proc.Identify(b.server())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(b.supervisorOf().PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	for proc.Alive(server.ID) {
		if time.Since(asked) > 10*time.Second {
			t.Fatalf("the server outlives three asks\n%s", b.stderr.bytes())
		}
		b.signal(syscall.SIGTERM)
		time.Sleep(100 * time.Millisecond) // the pause of a poll; signals that meet are one
	}
	t.Logf("the server was dead after %s", time.Since(asked))
	if code := b.wait(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, b.stderr.bytes())
	}
	t.Logf("the launch had ended after %s", time.Since(asked))
	result, err := os.ReadFile(filepath.Join(b.launchDir(), "attempts", "1", "result.json"))
	if err != nil || !strings.Contains(string(result), `"outcome": "stopped"`) || strings.Contains(string(b.stderr.bytes()), "unasked") {
		t.Errorf("what was asked for is told as something else: %s, %v\n%s", result, err, b.stderr.bytes())
	}
	b.gone(time.Second)
	b.unchanged()
	b.replays()
}

// delivered waits until a signal is no longer pending for the shim.
func (b *box) delivered(sig syscall.Signal) {
	b.t.Helper()
	for deadline := time.Now().Add(storyLimit); ; {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
		if err != nil {
			b.t.Fatal(err)
		}
		pending := regexp.MustCompile(`ShdPnd:\s*([0-9a-f]+)`).FindSubmatch(text)
		mask, err := strconv.ParseUint(string(pending[1]), 16, 64)
		if err != nil {
			b.t.Fatal(err)
		}
		if mask&(1<<(sig-1)) == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%v is still pending", sig)
		}
		time.Sleep(time.Millisecond) // the pause of a poll
	}
}

// replays: the journal of all supervisors together decides the same again.
func (b *box) replays() {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(self, "replay", filepath.Join(b.launchDir(), "journal.jsonl"))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Errorf("replay: %v\n%s", err, tail(out))
	}
}

// kill -9 of the shim: within five seconds nothing of the attempt remains and
// the patch is reverted, wherever it was hit; and that is what is told of it.
func TestShimKilled(t *testing.T) {
	for _, moment := range []string{`server is process`, `loading_weights \(`, readyLine} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			b := openBox(t, "leftovers")
			b.await(moment)
			if err := b.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			b.gone(5 * time.Second)
			b.reverted(5 * time.Second)
			b.unchanged()
			beside := standing{b.launched, b.dir}
			const told = "story: ended with 10: the shim died; everything of the launch was ended and restored"
			if _, out, _ := beside.sglaunch("status", "story"); !strings.Contains(out, told) {
				t.Errorf("status said: %s", out)
			}
		})
	}
}

// reverted waits until the launch's record says that it has ended.
func (b *box) reverted(limit time.Duration) {
	b.t.Helper()
	for deadline := time.Now().Add(limit); ; {
		data, err := os.ReadFile(filepath.Join(b.launchDir(), "launch.json"))
		if err == nil && strings.Contains(string(data), `"ended"`) {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("after %s: %s", limit, data)
		}
		time.Sleep(20 * time.Millisecond) // the pause of a poll
	}
}

// kill -9 of both at once, as a container's end does: recover heals the rest.
func TestBothKilledThenRecover(t *testing.T) {
	t.Parallel()
	b := openBox(t, "leftovers")
	b.await(readyLine)
	supervisor := b.supervisorOf()
	_ = syscall.Kill(supervisor.PID, syscall.SIGSTOP) // so that it cannot act in between
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(supervisor.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-b.done
	beside := standing{b.launched, b.dir}
	if _, out, _ := beside.sglaunch("status", "story"); !regexp.MustCompile(`story: dead[^$]*still patched: .*model_runner.py; .sglaunch recover. `).MatchString(out) {
		t.Errorf("status said: %s", out)
	}
	if said := b.heal(); !strings.Contains(said, "model_runner.py") {
		t.Errorf("recover said: %s", said)
	}
	b.gone(time.Second)
	b.unchanged()
}

// A line that makes the supervisor panic does not end the server either: the
// second death of the same line is the last.
func TestPoisonLine(t *testing.T) {
	t.Parallel()
	b := openBox(t, "healthy", "SGLAUNCH_TEST_POISON=Load weight begin")
	b.await(`supervisor is back`)
	b.await(readyLine)
	b.signal(syscall.SIGTERM)
	if code := b.wait(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, b.stderr.bytes())
	}
	if strings.Contains(string(b.stderr.bytes()), "attempt 2") {
		t.Errorf("the server did not survive:\n%s", b.stderr.bytes())
	}
	b.gone(time.Second)
	b.unchanged()
}
