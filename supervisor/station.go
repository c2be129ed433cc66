package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/history"
	"sglaunch/internal/mask"
	"sglaunch/internal/metrics"
	"sglaunch/internal/notify"
	"sglaunch/internal/serve"
	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

// station is the launch's side to the outside: it keeps what a status tells
// and answers on the control socket. It learns from the machine's views and
// reports and decides nothing.
type station struct {
	h      *Hands
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

func newStation(h *Hands, v machine.View) *station {
	return &station{h: h, view: v, tally: tally{public: !v.Announced.IsZero()}, wake: make(chan struct{}, 1), over: make(chan struct{})}
}

// open begins to answer. A launch without a control socket goes on: signals
// still stop it.
func (s *station) open() {
	if notify.Wanted() {
		s.work.Go(s.systemd)
	}
	s.hooks = notify.NewRunner(s.h.settings().Hooks, s.tally.public, func(err error) {
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

// status is the launch right now. It may be called from any goroutine.
func (s *station) status() serve.Status {
	s.mu.Lock()
	v := s.view
	st := serve.Status{
		V: serve.Version, Time: time.Now(), Launch: s.h.Name, Attempt: v.Attempt, Event: serve.EventStatus,
		State: string(v.State), Since: v.Spawned, Degraded: v.Degraded, Verdict: mask.String(v.Verdict),
	}
	s.tally.fill(&st)
	if s.http != nil {
		st.HTTP = s.http.Address()
	}
	s.mu.Unlock()
	st.Output, st.Silent, st.Restarts = s.h.counts(), s.h.watch.silentSources(), s.h.restarts
	l := s.h.launch
	st.ID, st.Dir, st.Command, st.Began = l.ID, l.Path, l.record.Command, l.record.Time
	st.Processes = serve.Processes{Shim: l.record.Shim.PID, Supervisor: os.Getpid(), Members: len(s.h.watch.ids())}
	if v.Stop != nil {
		st.Stop = &serve.Stop{By: v.Stop.By}
	}
	if !v.Spawned.IsZero() {
		s.running(&st, v)
	}
	st.GPUs = s.h.watch.table()
	return st
}

// running adds what is known of an attempt with a server.
func (s *station) running(st *serve.Status, v machine.View) {
	if v.Server != nil {
		st.Processes.Server = v.Server.PID
	} else {
		st.Processes.Members = 0
	}
	st.Phase, st.PhaseSince = v.Phase.String(), v.Phased
	st.Ready, st.ReadySince = v.State == machine.StateChecking || v.State == machine.StateUp, v.Ready
	st.Moved = &serve.Moved{Time: v.Moved, By: v.MovedBy}
	report, ok := s.h.reader.Report()
	if !ok {
		return
	}
	if len(report.Ranks) > 0 {
		st.Ranks = map[string]string{}
		for rank, phase := range report.Ranks {
			st.Ranks[rank] = phase.String()
		}
	}
	st.Activities = report.Activities
	if v.State != machine.StateStarting {
		return
	}
	st.Lagging = report.Lagging
	var done, total int64
	if p := report.Progress; p != nil && report.Phase == v.Phase {
		done, total = p.Done, p.Total
		st.Progress = &serve.Progress{Done: p.Done, Total: p.Total, Unit: p.Unit}
	}
	st.Left = s.h.launch.memory.left(v.Phase, v.Phased, done, total)
}

// left is how long it should still take until the server is ready; nil where
// that is unknown.
func (m *memory) left(phase phases.Phase, since time.Time, done, total int64) *serve.Left {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.past.Ready(phase, history.Progress{Done: done, Total: total}, time.Since(since))
	if !ok {
		return nil
	}
	return &serve.Left{Seconds: e.Left.Seconds(), Low: e.Low.Seconds(), High: e.High.Seconds(), Overdue: e.Overdue}
}

// table is what the newest sample says of the launch's GPUs.
func (w *watcher) table() []serve.GPU {
	w.mu.Lock()
	sample := w.sample
	w.mu.Unlock()
	var all []serve.GPU
	for _, g := range w.h.pick(sample) {
		row := serve.GPU{Index: g.Index, UUID: g.UUID, Name: g.Name, Lost: g.Lost,
			Util: readingOf(g.Util), MemUtil: readingOf(g.MemUtil)}
		if g.MemoryKnown() {
			used, total := int64(g.Used), int64(g.Total)
			row.Used, row.Total = &used, &total
		}
		if g.PowerMW.Known {
			watts := float64(g.PowerMW.Value) / 1000
			row.Watts = &watts
		}
		all = append(all, row)
	}
	return all
}

func readingOf(r gpu.Reading) *int64 {
	if !r.Known {
		return nil
	}
	return &r.Value
}

// masked hides secrets in what is told: a line of the server's may hold its
// arguments.
func masked(fields map[string]any) map[string]any {
	if fields == nil {
		return nil
	}
	out := make(map[string]any, len(fields))
	for name, value := range fields {
		switch v := value.(type) {
		case string:
			value = mask.String(v)
		case []string:
			all := slices.Clone(v)
			for i := range all {
				all[i] = mask.String(all[i])
			}
			value = all
		}
		out[name] = value
	}
	return out
}

var errStopping = errors.New("the launch is being stopped")
