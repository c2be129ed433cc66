package shim_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

func TestOneAttempt(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	if p.hello.PID != r.pid() || p.hello.Attempt != 0 || p.hello.Version != wire.Version {
		t.Errorf("hello is %+v", p.hello)
	}
	p.spawn(r.spec(1, "sh", "-c", `printf 'one\ntwo\r3'; exit 7`))
	if m := p.await(wire.Exited); m.Status.Code != 7 || m.Status.Signal != 0 {
		t.Errorf("exited with %v", m.Status)
	}
	const want = "one\ntwo\r3"
	if m := p.await(wire.Drained); m.To != int64(len(want)) || m.Cut {
		t.Errorf("drained: %+v", m)
	}
	p.kill(1)
	p.await(wire.TreeGone)
	p.finish(11)
	if status := r.exit(); status != 11 {
		t.Errorf("exit status %d", status)
	}
	same(t, "standard output", r.stdout.bytes(), []byte(want))
	same(t, "log", r.log(1), []byte(want))
	same(t, "stream", p.received(), []byte(want))
	same(t, "standard error", r.stderr.bytes(), nil)
	if info, err := os.Stat(r.path("server1.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log: %v %v", info, err)
	}
}

func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	t.Errorf("%s differs at byte %d of %d (want %d): got %q, want %q", what, i, len(got), len(want),
		excerpt(got, i), excerpt(want, i))
}

func excerpt(b []byte, at int) []byte { return b[max(0, at-20):min(len(b), at+60)] }

// The server's bytes arrive as they are, whatever they are, however many.
func TestBytesAreTheServers(t *testing.T) {
	const size = 50 << 20
	for _, stdio := range []string{"pty", "pipe"} {
		t.Run(stdio, func(t *testing.T) {
			r := newRig(t, rigOptions{})
			p := r.supervisor()
			spec := r.spec(1, self(), fmt.Sprint(size))
			spec.Env, spec.Stdio = role("flood"), stdio
			p.spawn(spec)
			if m := p.await(wire.Drained); m.To != size || m.Cut {
				t.Errorf("drained: %+v", m)
			}
			p.kill(1)
			p.await(wire.TreeGone)
			p.finish(0)
			r.exit()
			want, _ := io.ReadAll(io.LimitReader(noise(), size))
			same(t, "standard output", r.stdout.bytes(), want)
			same(t, "log", r.log(1), want)
			same(t, "stream", p.received(), want)
		})
	}
}

func TestPipesKeepStreamsApart(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	spec := r.spec(1, self(), "2000")
	spec.Env, spec.Stdio, spec.Errors = role("both"), "pipe", r.path("errors.log")
	p.spawn(spec)
	p.await(wire.Drained)
	p.kill(1)
	p.await(wire.TreeGone)
	p.finish(0)
	r.exit()
	var out, errs strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&out, "out %d\n", i)
		fmt.Fprintf(&errs, "err %d\n", i)
	}
	same(t, "standard output", r.stdout.bytes(), []byte(out.String()))
	same(t, "standard error", r.stderr.bytes(), []byte(errs.String()))
	errors, _ := os.ReadFile(r.path("errors.log"))
	same(t, "log of standard error", errors, []byte(errs.String()))
	same(t, "log", r.log(1), p.received())
	if len(r.log(1)) != out.Len()+errs.Len() {
		t.Errorf("the log has %d bytes", len(r.log(1)))
	}
}

// look prints what a process can tell about how it was started.
const look = `import os,resource,signal,sys
print("tty", [os.isatty(i) for i in range(3)])
if os.isatty(1): print("size", os.get_terminal_size(1))
print("stdin", os.readlink("/proc/self/fd/0"))
print("leads", os.getsid(0)==os.getpid()==os.getpgrp())
for l in open("/proc/self/status").read().splitlines():
    if l.split(":")[0] in ("SigBlk","SigIgn","SigCgt"): print(l)
print("limits", [(n, resource.getrlimit(getattr(resource,n))) for n in sorted(dir(resource)) if n.startswith("RLIMIT_")])
print("umask", oct(os.umask(0)), "nice", os.nice(0), "cwd", os.getcwd())
print("oom", open("/proc/self/oom_score_adj").read().strip())
print("fds", sorted(int(f) for f in os.listdir("/proc/self/fd"))[:4])
print("marked", os.environ.get("SHIM_TEST_MARK","") != "", "aside", "SGLAUNCH_ASIDE" in os.environ)
`

// odd starts a command in unusual circumstances.
const odd = `import os,resource,signal,sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGALRM])
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 900))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.umask(0o027); os.nice(3)
os.execvp(sys.argv[1], sys.argv[1:])
`

// The server sees what the raw command would have seen.
func TestServerStandsAsTheRawCommand(t *testing.T) {
	for name, wrap := range map[string][]string{"usual": nil, "odd": {"python3", "-c", odd}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigOptions{wrap: wrap})
			p := r.supervisor()
			p.spawn(r.spec(1, "python3", "-c", look))
			p.await(wire.Drained)
			viaShim := string(p.received())
			p.finish(0)
			r.exit()

			raw := newSink()
			argv := append(slices.Clone(wrap), "python3", "-c", look)
			if err := rawCommand(r.dir, raw, argv...).Run(); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(raw.text()) {
				switch strings.Fields(line)[0] {
				case "tty", "leads", "marked": // a pty, a session and a marker of its own
				default:
					if !strings.Contains(viaShim, line) {
						t.Errorf("raw: %s\nvia the shim:\n%s", line, viaShim)
					}
				}
			}
			for _, line := range []string{
				"tty [False, True, True]", "size os.terminal_size(columns=250, lines=50)", "stdin /dev/null", "leads True", "marked True aside False",
			} {
				if !strings.Contains(viaShim, line+"\n") {
					t.Errorf("missing %q in\n%s", line, viaShim)
				}
			}
		})
	}
}

func TestSignalsReachTheServer(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	spec := r.spec(1, self())
	spec.Env = role("signals")
	p.spawn(spec)
	p.awaitOutput("listening")
	for _, sig := range []unix.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH} {
		r.signal(sig)
		p.awaitOutput("heard " + sig.String())
	}
	for range 2 {
		r.signal(unix.SIGTERM)
		if m := p.await(wire.Asked); m.Sig != int(unix.SIGTERM) {
			t.Errorf("asked: %+v", m)
		}
	}
	p.send(wire.Message{Type: wire.Signal, Attempt: 1, Sig: int(unix.SIGTERM), Scope: wire.ScopeLeader})
	if m := p.await(wire.Exited); m.Status.Code != 0 {
		t.Errorf("exited: %v", m.Status)
	}
	p.finish(0)
	if status := r.exit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// An orphan of the server takes us for its parent, which SGLang's children tell by
// SIGQUIT that they failed.
func TestQuitOfAnOrphan(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	spec := r.spec(1, "sh", "-c", `(sleep 1000 & echo $!); exec "$0"`, self())
	spec.Env = role("signals")
	p.spawn(spec)
	p.awaitOutput("listening")
	var orphan int
	if _, err := fmt.Sscan(string(p.received()), &orphan); err != nil {
		t.Fatal(err)
	}
	for p.await(wire.Member).Proc.PID != orphan {
	}
	r.signal(unix.SIGQUIT)
	p.awaitOutput("heard quit")
	p.kill(1)
	p.await(wire.TreeGone)
	p.finish(0)
	r.exit()
}

// The third wish to end is granted by the shim itself, though the supervisor
// and the server do nothing.
func TestThirdSignalKills(t *testing.T) {
	r := newRig(t, rigOptions{durations: durations{FinishPatience: 300 * time.Millisecond}})
	p := r.supervisor()
	spec := r.spec(1, self())
	spec.Env = role("deaf")
	server := p.spawn(spec)
	p.awaitOutput("deaf")
	for range 3 {
		r.signal(unix.SIGTERM)
		p.await(wire.Asked)
	}
	p.await(wire.TreeGone)
	if proc.Alive(proc.ID{PID: server.PID, Start: server.Start}) {
		t.Error("the server lives")
	}
	q := r.supervisor() // the first one was given up, since it did not finish
	if len(q.hello.Asked) != 3 || !q.hello.TreeGone || q.hello.Exited == nil {
		t.Errorf("hello: %+v", q.hello)
	}
	if status := r.exit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if text := r.stderr.text(); !strings.Contains(text, "the launch ends without it") {
		t.Errorf("standard error: %s", text)
	}
}

// Two servers of one launch never live at once.
func TestOneServerAtATime(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	first := p.spawn(r.spec(1, "sleep", "100"))
	second := r.spec(2, "sleep", "100")
	p.send(wire.Message{Type: wire.Spawn, Spec: &second})
	if m := p.await(wire.SpawnFailed); !strings.Contains(m.Text, "attempt 1 may still be alive") {
		t.Errorf("answer: %+v", m)
	}
	again := r.spec(1, "sleep", "100")
	p.send(wire.Message{Type: wire.Spawn, Spec: &again})
	if m := p.await(wire.Spawned); m.Proc.PID != first.PID {
		t.Errorf("spawned twice: %+v and %+v", first, m.Proc)
	}
	p.kill(1)
	p.await(wire.TreeGone)
	p.await(wire.Drained)
	p.spawn(second)
	p.finish(10)
	if status := r.exit(); status != 10 {
		t.Errorf("exit status %d", status)
	}
}

func TestSpawnFailures(t *testing.T) {
	cases := map[string]struct {
		change func(*wire.Spec)
		want   string
	}{
		"not found":    {func(s *wire.Spec) { s.Argv = []string{"no-such-command-here"} }, `cannot run "no-such-command-here": not found in PATH`},
		"no such file": {func(s *wire.Spec) { s.Argv = []string{"./absent"} }, "no such file"},
		"no folder":    {func(s *wire.Spec) { s.Dir = "/no/such/folder" }, "no such file"},
		"empty":        {func(s *wire.Spec) { s.Argv = nil }, "empty command"},
		"log exists":   {func(s *wire.Spec) { _ = os.WriteFile(s.Log, nil, 0o600) }, "cannot create the log"},
		"stdio":        {func(s *wire.Spec) { s.Stdio = "tape" }, `cannot use stdio "tape"`},
		"stdin":        {func(s *wire.Spec) { s.Stdin = "tape" }, `cannot use stdin "tape"`},
	}
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	attempt := 0
	for name, c := range cases {
		attempt++
		spec := r.spec(attempt, "true")
		c.change(&spec)
		p.send(wire.Message{Type: wire.Spawn, Spec: &spec})
		if m := p.await(wire.SpawnFailed); m.Attempt != attempt || !strings.Contains(m.Text, c.want) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	p.finish(78)
	if status := r.exit(); status != 78 {
		t.Errorf("exit status %d", status)
	}
}
