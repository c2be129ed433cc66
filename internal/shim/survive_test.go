package shim_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// kill -9 of the supervisor while output streams: the server is unharmed, the
// next supervisor is there at once and misses no byte.
func TestSupervisorDiesWhileOutputStreams(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	p.send(wire.Message{Type: wire.Adopt, Launch: &wire.Launch{ID: "id", Name: "name", Dir: r.dir}})
	p.send(wire.Message{Type: wire.Lease, Text: "lease"})
	p.send(wire.Message{Type: wire.Ledger, Text: "ledger"})
	spec := r.spec(1, self())
	spec.Env = role("ticker")
	server := p.spawn(spec)
	for i := range 3 {
		p.awaitOutput(fmt.Sprintf("line %07d", 100*(i+1)))
		p.die()
		died := time.Now()
		p = r.supervisor()
		if d := time.Since(died); d > 5*time.Second { // a tenth of one on a box that does nothing else
			t.Errorf("the next supervisor came after %v", d)
		}
		h := p.hello
		if h.Restarts != i+1 || h.Attempt != 1 || h.Server == nil || h.Server.PID != server.PID || h.Exited != nil ||
			h.Lease != "lease" || h.Ledger != "ledger" || h.Launch == nil || h.Launch.ID != "id" {
			t.Errorf("hello: %+v", h)
		}
		if m := p.await(wire.Member); m.Proc.PID != server.PID {
			t.Errorf("member: %+v", m.Proc)
		}
		p.send(wire.Message{Type: wire.Stream, Attempt: 1})
		p.send(wire.Message{Type: wire.Read, Attempt: 1, To: int64(i + 1)})
	}
	if !proc.Alive(proc.ID{PID: server.PID, Start: server.Start}) {
		t.Fatal("the server died")
	}
	p.awaitOutput("line 0000500")
	p.kill(1)
	p.await(wire.TreeGone)
	p.await(wire.Drained)
	p.finish(0)
	r.exit()
	if p.torn {
		t.Error("the stream has a tear")
	}
	same(t, "stream", p.received(), r.log(1))
	same(t, "standard output", r.stdout.bytes(), r.log(1))
	for i, line := range bytes.Split(bytes.TrimSuffix(r.log(1), []byte("\n")), []byte("\n"))[:500] {
		if want := fmt.Sprintf("line %07d of a server that goes on", i); string(line) != want {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

// A stretch of output that kills the supervisor is suspect; the line in it that
// kills again is skipped.
func TestPoisonIsSkipped(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	p.spawn(r.spec(1, "sh", "-c", "echo good; echo poison; echo good again; exec sleep 100"))
	p.awaitOutput("again")
	p.send(wire.Message{Type: wire.Reading, Attempt: 1, From: 0, To: 23})
	p.hangUp()

	p = r.supervisor()
	if s := p.hello.Suspect; s == nil || *s != (wire.Range{Attempt: 1, From: 0, To: 23}) || len(p.hello.Skip) != 0 {
		t.Fatalf("hello after the first death: %+v", p.hello)
	}
	p.send(wire.Message{Type: wire.Reading, Attempt: 1, From: 0, To: 5})
	p.send(wire.Message{Type: wire.Read, Attempt: 1, To: 5})
	p.send(wire.Message{Type: wire.Reading, Attempt: 1, From: 5, To: 12})
	p.hangUp()

	p = r.supervisor()
	if k := p.hello.Skip; len(k) != 1 || k[0] != (wire.Range{Attempt: 1, From: 5, To: 12}) {
		t.Fatalf("hello after the second death: %+v", p.hello)
	}
	p.send(wire.Message{Type: wire.Read, Attempt: 1, To: 23})
	p.hangUp()

	p = r.supervisor()
	if p.hello.Suspect != nil || len(p.hello.Skip) != 1 {
		t.Errorf("hello once the stretch is read: %+v", p.hello)
	}
	p.finish(0)
	r.exit()
}

// A supervisor that keeps dying leaves the server alone with the shim; SIGTERM
// still ends it, and a last supervisor may tidy up.
func TestBlind(t *testing.T) {
	r := newRig(t, rigOptions{durations: durations{Grace: 300 * time.Millisecond}})
	p := r.supervisor()
	spec := r.spec(1, self())
	spec.Env = role("deaf")
	server := p.spawn(spec)
	p.send(wire.Message{Type: wire.Lease, Text: "venv"})
	p.awaitOutput("deaf")
	for i := range 5 {
		p.hangUp()
		if i < 4 {
			p = r.supervisor()
		}
	}
	r.stderr.await(t, "the server is kept, but nobody watches it")
	if !proc.Alive(proc.ID{PID: server.PID, Start: server.Start}) {
		t.Fatal("the server died of its supervisor")
	}
	r.signal(15)
	p = r.supervisor()
	if p.hello.Exited == nil || p.hello.Exited.Signal != 9 || len(p.hello.Asked) != 1 || !p.hello.Granted {
		t.Errorf("hello: %+v", p.hello)
	}
	p.die()
	if status := r.exit(); status != 12 {
		t.Errorf("exit status %d", status)
	}
	if text := r.stderr.text(); !strings.Contains(text, `a patch is still applied (venv): run "sglaunch recover"`) {
		t.Errorf("standard error: %s", text)
	}
}

// blinded is a shim with a server whose supervisors do not live.
func blinded(t *testing.T, d durations) *rig {
	r := newRig(t, rigOptions{durations: d})
	p := r.supervisor()
	p.spawn(r.spec(1, "sleep", "1000"))
	for i := range 5 {
		p.hangUp()
		if i < 4 {
			p = r.supervisor()
		}
	}
	r.stderr.await(t, "the server is kept, but nobody watches it")
	return r
}

// What no supervisor could live with may pass: now and then one more is tried.
func TestBlindTriesAgain(t *testing.T) {
	r := blinded(t, durations{PingEvery: 10 * time.Millisecond})
	r.supervisor().hangUp()
	r.supervisor().finish(0)
	r.exit()
}

// Who mends the cause need not wait, nor restart the server. The supervisor that lives
// then decides again, and no signal is for the shim alone.
func TestBlindIsAskedToReload(t *testing.T) {
	r := blinded(t, durations{PingEvery: time.Hour})
	r.signal(unix.SIGHUP)
	p := r.supervisor()
	p.await(wire.Asked)
	p.send(wire.Message{Type: wire.Pong})
	r.stderr.await(t, "the server is watched again")
	r.signal(unix.SIGTERM)
	p.await(wire.Asked)
	p.kill(1)
	if m := p.await(wire.Exited); m.Status.Signal != int(unix.SIGKILL) {
		t.Errorf("the shim acted alone: %+v", m.Status)
	}
	p.finish(0)
	r.exit()
}

// A reload that reached nobody is heard by the next supervisor, and reloads, however
// many, leave room for the wish to end.
func TestReloadsAreKept(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	for range 20 {
		r.signal(unix.SIGHUP)
		p.await(wire.Asked)
	}
	p.send(wire.Message{Type: wire.Pong})
	r.signal(unix.SIGTERM)
	p.await(wire.Asked)
	p.hangUp()
	p = r.supervisor()
	if a := p.hello.Asked; len(a) != 1 || a[0] != int(unix.SIGTERM) {
		t.Errorf("asked: %v", a)
	}
	p.await(wire.Ping)
	if p.has(wire.Asked) {
		t.Error("a reload that was answered is told again")
	}
	r.signal(unix.SIGHUP)
	p.await(wire.Asked)
	p.hangUp()
	p = r.supervisor()
	if m := p.await(wire.Asked); m.Sig != int(unix.SIGHUP) {
		t.Errorf("asked: %+v", m)
	}
	p.finish(0)
	r.exit()
}

func TestNoSupervisorAtAll(t *testing.T) {
	r := newRig(t, rigOptions{alone: true})
	if status := r.exit(); status != 10 {
		t.Errorf("exit status %d", status)
	}
	if text := r.stderr.text(); !strings.Contains(text, "the supervisor ended (exit status 3), again and again, and no server lives") {
		t.Errorf("standard error: %s", text)
	}
}

// What the supervisor said with its last breath counts.
func TestFinishIsHeardThoughTheSupervisorIsGone(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	p.send(wire.Message{Type: wire.Print, Text: "sglaunch: launch.toml:3: no such key"})
	p.finish(78)
	p.conn.Close()
	if status := r.exit(); status != 78 {
		t.Errorf("exit status %d", status)
	}
	same(t, "standard error", r.stderr.bytes(), []byte("sglaunch: launch.toml:3: no such key\n"))
}
