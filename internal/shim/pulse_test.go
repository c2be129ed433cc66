package shim_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// A supervisor that was stopped is replaced once it has missed 24 pings; two, where
// the end was asked for. The server does not notice.
func TestStoppedSupervisorIsReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		every    time.Duration
		asked    unix.Signal // 0: nobody asks
		terminal bool
		silent   string
	}{
		"in service":                {20 * time.Millisecond, 0, false, "480ms"},
		"asked":                     {time.Second, unix.SIGTERM, false, "2s"},
		"the terminal has vanished": {time.Second, unix.SIGHUP, true, "2s"},
	} {
		t.Run(name, func(t *testing.T) {
			o := rigOptions{}
			if c.terminal {
				o, _, _ = person(t)
				o.stdout, o.stderr = nil, nil
			}
			o.durations = durations{PingEvery: c.every}
			r := newRig(t, o)
			p := r.supervisor()
			server := p.spawn(r.spec(1, "sleep", "1000"))
			p.await(wire.Ping)
			p.send(wire.Message{Type: wire.Pong})
			p.send(wire.Message{Type: wire.Print, Text: "the answer is there"})
			r.stderr.await(t, "the answer is there")
			if err := unix.Kill(p.pid, unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			if c.asked != 0 {
				r.signal(c.asked)
			}
			next := r.supervisor()
			r.stderr.await(t, fmt.Sprintf("sglaunch: the supervisor is given up: it has answered nothing for %s\n", c.silent))
			r.stderr.await(t, "sglaunch: the supervisor ended (signal 9 (SIGKILL)); it is started again\n")
			if h := next.hello; h.Exited != nil || len(h.Asked) > 0 != (c.asked != 0) || h.Terminal != c.terminal {
				t.Errorf("hello: %+v", h)
			}
			if !proc.Alive(proc.ID{PID: server.PID, Start: server.Start}) {
				t.Error("the server died of its supervisor")
			}
			next.kill(1)
			next.await(wire.TreeGone)
			next.finish(0)
			r.exit()
		})
	}
}

// One that has never answered is an older program, or still takes the launch up:
// it is left alone, and told of once. So is one that answers late but does.
func TestSupervisorThatIsNotSilentIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		answerEvery int
		told        string
	}{
		"never answered": {0, "sglaunch: the supervisor has not taken the launch up for 480ms" +
			" (does the state directory answer?): nobody watches the server meanwhile\n"},
		"answers every tenth": {10, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigOptions{durations: durations{PingEvery: 20 * time.Millisecond}})
			p := r.supervisor()
			for i := range 100 {
				p.await(wire.Ping)
				if c.answerEvery > 0 && i%c.answerEvery == 0 {
					p.send(wire.Message{Type: wire.Pong})
				}
			}
			p.finish(0)
			if code := r.exit(); code != 0 || r.stderr.text() != c.told {
				t.Errorf("exit status %d, standard error %q", code, r.stderr.text())
			}
		})
	}
}

// Where all of us were stopped, for longer than a supervisor may be silent, nobody
// missed anything.
func TestNobodyIsSilentWhileAllAreStopped(t *testing.T) {
	const every = 100 * time.Millisecond
	r := newRig(t, rigOptions{durations: durations{PingEvery: every}})
	p := r.supervisor()
	answer := func() { p.await(wire.Ping); p.send(wire.Message{Type: wire.Pong}) }
	answer()
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGCONT} {
		_ = unix.Kill(p.pid, sig)
		_ = unix.Kill(r.pid(), sig)
		if sig == unix.SIGSTOP {
			time.Sleep(30 * every) // what counts is the passing of time
		}
	}
	for range 30 {
		answer()
	}
	p.finish(0)
	if code := r.exit(); code != 0 || r.stderr.text() != "" {
		t.Errorf("exit status %d, standard error %q", code, r.stderr.text())
	}
}
