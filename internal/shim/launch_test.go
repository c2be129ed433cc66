package shim_test

import (
	"testing"
	"time"

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
	if status := r.exit(10 * time.Second); status != 11 {
		t.Errorf("exit status %d", status)
	}
	for name, got := range map[string]string{
		"standard output": r.stdout.text(), "log": string(r.log(1)), "stream": string(p.received()),
	} {
		if got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if got := r.stderr.text(); got != "" {
		t.Errorf("standard error is %q", got)
	}
}
