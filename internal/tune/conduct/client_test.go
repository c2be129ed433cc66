package conduct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sglaunch/internal/proc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clientOf is a client that runs a shell script.
func clientOf(t *testing.T, script string) Client {
	t.Helper()
	return Client{
		Argv: []string{"/bin/sh", "-c", script}, Env: os.Environ(), Log: filepath.Join(t.TempDir(), "client.log"),
		Marker: "SGLAUNCH_TEST_CLIENT=" + t.Name(), Limit: time.Minute, Quiet: time.Minute,
	}
}

// left lists what lives of a client.
func left(t *testing.T, c Client) []proc.Proc {
	t.Helper()
	procs, err := proc.WithMarker(c.Marker)
	if err != nil {
		t.Fatal(err)
	}
	return procs
}

func TestClientEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script  string
		limit, quiet  time.Duration
		problem       string
		least, atMost time.Duration
	}{
		{name: "well", script: "echo fine"},
		{name: "badly", script: "exit 3", problem: "the bench client ended with exit status 3"},
		{name: "with last words", script: "echo Traceback; echo 'IndexError: index -1 is out of bounds'; exit 1", problem: "the bench client ended with exit status 1: IndexError: index -1 is out of bounds"},
		{name: "by a signal", script: "kill -9 $$", problem: "the bench client ended with signal: killed"},
		{name: "too late", script: "while :; do echo .; sleep 0.1; done", limit: 700 * time.Millisecond,
			problem: "the bench client took longer than 700ms", least: 700 * time.Millisecond, atMost: 5 * time.Second},
		{name: "silent", script: "sleep 60", quiet: time.Second, problem: "no sign of life for 1s", least: time.Second, atMost: 5 * time.Second},
		{name: "stalled", script: "printf '\\r 30%%|###| 6/20 [00:01<00:02]'; while :; do echo warning; sleep 0.1; done", quiet: time.Second,
			problem: "nothing completed for 1s at 6 of 20 requests", least: time.Second, atMost: 6 * time.Second},
		{name: "deaf", script: "trap '' TERM; while :; do sleep 0.1; done", limit: 300 * time.Millisecond,
			problem: "took longer than 300ms", least: clientGrace, atMost: 10 * time.Second},
		{name: "with a stray", script: "setsid sleep 60 & echo fine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client := clientOf(t, c.script)
			client.Limit, client.Quiet = cmp.Or(c.limit, client.Limit), cmp.Or(c.quiet, client.Quiet)
			end := client.Run(t.Context())
			if c.problem == "" && end.Problem != "" || !strings.Contains(end.Problem, c.problem) {
				t.Errorf("the problem is %q, want %q", end.Problem, c.problem)
			}
			if end.Took < c.least || c.atMost > 0 && end.Took > c.atMost {
				t.Errorf("it took %s", end.Took)
			}
			if procs := left(t, client); len(procs) > 0 {
				t.Errorf("left behind: %v", procs)
			}
		})
	}
}

// The end of the server ends the client at once, with its tree.
func TestClientIsCancelled(t *testing.T) {
	t.Parallel()
	c := clientOf(t, "sleep 60 & sleep 60")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(300*time.Millisecond, func() { cancel(errors.New("the server crashed")) })
	end := c.Run(ctx)
	if end.Problem != "the bench client was ended: the server crashed" || end.Took > 20*time.Second {
		t.Errorf("after %s: %q", end.Took, end.Problem)
	}
	if procs := left(t, c); len(procs) > 0 {
		t.Errorf("left behind: %v", procs)
	}
}

// barAndSpin is what the clients in Python begin with.
const barAndSpin = `
import sys, time
def bar(n):
    sys.stderr.write('\r%d/9 [00:01<00:01]' % n); sys.stderr.flush()
def spin(s):
    end = time.monotonic() + s
    while time.monotonic() < end: pass
`

// A client that is busy is seen to be, one that waits is not; what it used
// before its first request does not count. It tells itself what it got, for the
// machine may be busy with others.
func TestClientCPU(t *testing.T) {
	t.Parallel()
	const tools = barAndSpin + `
def measured(work):
    bar(1); wall, used = time.monotonic(), time.process_time()
    work(1.4); bar(2); work(0.7)
    print("got %.3f CPUs" % ((time.process_time() - used) / (time.monotonic() - wall)))
`
	for name, script := range map[string]string{"waits": "spin(0.7); measured(time.sleep)", "spins": "time.sleep(0.7); measured(spin)"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := clientOf(t, "exec python3 -c \"$SCRIPT\"")
			client.Env = append(client.Env, "SCRIPT="+tools+script)
			end := client.Run(t.Context())
			printed, _ := tailOf(client.Log, 1<<10)
			var got float64
			if _, text, ok := strings.Cut(string(printed), "got "); ok {
				_, _ = fmt.Sscan(text, &got)
			}
			if name == "spins" && got < 0.02 {
				t.Fatalf("the client spun with %v CPUs: %q", got, printed)
			}
			if end.Problem != "" || end.CPUs < got/2-0.05 || end.CPUs > got*1.5+0.15 {
				t.Errorf("it was seen to use %.2f CPUs and says %.2f; %s", end.CPUs, got, end.Problem)
			}
		})
	}
}

func TestClientCannotStart(t *testing.T) {
	c := clientOf(t, "")
	c.Argv = []string{"/no/such/program"}
	if end := c.Run(t.Context()); end.Problem != `cannot start the bench client "/no/such/program": no such file or directory` {
		t.Errorf("%q", end.Problem)
	}
	if end := c.Run(t.Context()); !strings.Contains(end.Problem, "cannot keep the bench client's output") {
		t.Errorf("a log that exists: %q", end.Problem)
	}
}

// A client that is kept waiting is seen to be: by another on the one CPU that
// both may use, or by a signal that stops it. It tells itself how long it waited.
func TestClientLag(t *testing.T) {
	t.Parallel()
	const tools = barAndSpin + `
import os, signal
def waited():
    return int(open('/proc/self/schedstat').read().split()[1]) / 1e9
def measured(work):
    bar(1); time.sleep(0.6); wall, before = time.monotonic(), waited()
    stood = work() or 0
    print("got %.3f" % ((waited() - before + stood) / (time.monotonic() - wall)))
def crowded():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if os.fork() == 0:
        spin(3); os._exit(0)
    spin(3); os.wait()
def stopped():
    me = os.getpid()
    if os.fork() == 0:
        while open('/proc/%d/stat' % me).read().split()[2] != 'T': time.sleep(0.01)
        time.sleep(2); os.kill(me, signal.SIGCONT); os._exit(0)
    began = time.monotonic(); os.kill(me, signal.SIGSTOP)
    stood = time.monotonic() - began; os.wait()
    return stood
`
	for name, least := range map[string]float64{"crowded": 0.2, "stopped": 0.5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := clientOf(t, "exec python3 -c \"$SCRIPT\"")
			client.Env = append(client.Env, "SCRIPT="+tools+"measured("+name+")")
			end := client.Run(t.Context())
			printed, _ := tailOf(client.Log, 1<<10)
			var got float64
			if _, text, ok := strings.Cut(string(printed), "got "); ok {
				_, _ = fmt.Sscan(text, &got)
			}
			if got < least {
				t.Fatalf("the client waited for %v of the time: %q", got, printed)
			}
			if end.Problem != "" || end.Lag < got/2 || end.Lag > got*1.5+0.15 {
				t.Errorf("it was seen to wait for %.2f of the time and says %.2f; %s", end.Lag, got, end.Problem)
			}
		})
	}
}
