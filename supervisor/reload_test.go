package supervisor

import (
	"testing"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/notify"
	"sglaunch/internal/shim/wire"
	"sglaunch/supervisor/machine"
)

// What counts from now on counts for those who have begun to work, too: the sampler
// of a server in service, and what follows from an Xid.
func TestReloadReachesWhoIsAtWork(t *testing.T) {
	w := watching(t)
	h, sampler := w.h, gpu.NewFake()
	defer sampler.Close()
	h.gpus, h.ctx, h.orders = sampler, t.Context(), make(chan wire.Message, 1)
	h.reader = newReader(nil, nil, &wire.Hello{}, nil)
	hooks := notify.NewRunner(notify.Hooks{}, notify.Before{}, func(error) {})
	defer hooks.Close()
	h.front = &station{h: h, hooks: hooks}
	h.Reload = func() (Reloaded, error) {
		return Reloaded{Settings: Settings{Starting: time.Second, Serving: time.Minute, XidReport: true}}, nil
	}
	person := func() bool {
		w.posted()
		w.xid(gpu.Xid{Code: 79})
		x, _ := w.posted()[0].(machine.Hardware)
		return x.Person
	}
	if !person() {
		t.Fatal("an Xid 79 asks for nobody")
	}
	if _, err := h.reload("me"); err != nil {
		t.Fatal(err)
	}
	if got := sampler.Interval(); got != time.Minute {
		t.Errorf("the sampler goes on every %s", got)
	}
	if person() {
		t.Error("an Xid is acted on that is only to be told")
	}
}
