package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sglaunch/internal/metrics"
	"sglaunch/internal/notify"
	"sglaunch/internal/serve"
	"sglaunch/internal/shim/wire"
	"sglaunch/supervisor/machine"
)

// station is the launch's side to the outside: it keeps what a status tells
// and answers on the control socket. It learns from the machine's views and
// reports and decides nothing.
type station struct {
	h      *hands
	server *serve.Server // nil: the socket could not be opened
	http   *serve.HTTP   // nil: not wanted, or it could not listen
	hooks  *notify.Runner
	wake   chan struct{} // something was told
	over   chan struct{} // closed at the end
	work   sync.WaitGroup

	mu    sync.Mutex // guards what follows
	view  machine.View
	tally tally
}

func newStation(h *hands, v machine.View) *station {
	s := &station{h: h, view: v, wake: make(chan struct{}, 1), over: make(chan struct{})}
	if attempts, err := h.launch.Attempts(); err == nil { // a launch that begins has none
		s.tally.again(attempts)
	}
	s.tally.public = !v.Announced.IsZero()
	return s
}

// open begins to answer. A launch without a control socket goes on: signals
// still stop it.
func (s *station) open() {
	if notify.Wanted() {
		s.work.Go(s.systemd)
	}
	s.hooks = notify.NewRunner(s.h.settings().Hooks, notify.Before{Announced: s.tally.public, Failed: s.tally.failing}, func(err error) {
		s.h.order(wire.Message{Type: wire.Print, Text: "sglaunch: " + err.Error()})
	})
	s.openHTTP()
	path, err := s.h.socket()
	if err == nil {
		s.server, err = serve.Listen(serve.Options{Path: path, Status: s.status, Ask: s.ask})
	}
	if err != nil {
		s.deaf("control socket", err)
	}
}

// openHTTP serves status and metrics where [listen] http asks for it.
func (s *station) openHTTP() {
	if s.h.HTTP == "" {
		return
	}
	server, err := serve.ListenHTTP(serve.HTTPOptions{Address: s.h.HTTP, Status: s.status, Metrics: metrics.Handler(s.status)})
	if err != nil {
		s.deaf("HTTP", err)
		return
	}
	s.mu.Lock()
	s.http = server
	s.mu.Unlock()
	if serve.Exposed(s.h.HTTP) {
		s.h.note("listen", fmt.Sprintf("warning: whoever reaches %s may read status and metrics of this launch, with the command and the server's last words", server.Address()))
	}
}

func (s *station) deaf(source string, err error) {
	s.h.loop.Post(0, machine.SourceLost{Source: source, Reason: err.Error()})
}

// close tells everybody that it is over, hooks within their limit.
func (s *station) close() {
	close(s.over)
	s.work.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), workMargin)
	defer cancel()
	<-within(ctx, s.closeDoors) // a socket on a disk that hangs stays
	s.hooks.Close()
}

// closeDoors ends what others can ask through.
func (s *station) closeDoors() (err error) {
	if s.http != nil {
		err = s.http.Close()
	}
	if s.server != nil {
		err = errors.Join(err, s.server.Close())
	}
	return err
}

// systemdEvery is how often systemd may hear of what nobody reports: the time
// that a start still takes, progress that extends it.
const systemdEvery = 5 * time.Second

// systemd tells the service manager, by the shim, until the launch is over.
func (s *station) systemd() {
	var sd notify.Systemd
	tell := func() {
		s.mu.Lock()
		deadline := s.view.Deadline
		s.mu.Unlock()
		if text := sd.Tell(s.status(), deadline, time.Now()); text != "" {
			s.h.order(wire.Message{Type: wire.Notify, Text: text})
		}
	}
	tick := time.NewTicker(systemdEvery)
	defer tick.Stop()
	for {
		tell()
		select {
		case <-s.wake:
		case <-tick.C:
		case <-s.over:
			tell()
			return
		}
	}
}

// ask hands a wish to the machine. An error is the reason alone: who asked knows
// what for.
func (s *station) ask(r serve.Request) (map[string]any, error) {
	s.mu.Lock()
	v := s.view
	s.mu.Unlock()
	switch r.Do {
	case serve.DoStop:
		s.h.loop.Post(0, machine.StopAsked{By: r.By, Force: r.Force})
	case serve.DoReload:
		return s.h.reload(r.By)
	case serve.DoUpgrade:
		return nil, s.h.handOver(r)
	default:
		if v.Stop != nil {
			return nil, errStopping
		}
		s.h.loop.Post(0, machine.RestartAsked{By: r.By})
	}
	return nil, nil
}

// viewed takes the machine's state after a step.
func (s *station) viewed(v machine.View) {
	s.mu.Lock()
	if v.Attempt != s.view.Attempt {
		s.tally.anew()
	}
	s.view = v
	s.mu.Unlock()
}

// told takes every report of the machine, masked, and passes it on.
func (s *station) told(e envelope) {
	s.mu.Lock()
	s.tally.told(e)
	s.mu.Unlock()
	if s.server != nil {
		s.server.Publish(e)
	}
	s.hooks.Told(e)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// answered takes how many answers a check has got.
func (s *station) answered(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.answered(n)
}

// reason is why the launch has ended.
func (s *station) reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tally.exit == nil {
		return ""
	}
	return s.tally.exit.Reason
}

var errStopping = errors.New("the launch is being stopped")
