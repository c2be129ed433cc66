package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/mask"
	"sglaunch/internal/sglangcmd"
	"sglaunch/phases"
)

// memory is the launch's place in the history: what earlier launches teach,
// and what this one leaves to the next. It is a convenience, never a
// condition; what the database refuses is told once and then done without.
type memory struct {
	launch string
	name   string
	asked  history.Key
	report func(error) // called once at most

	once   sync.Once
	db     *history.DB
	writes chan func(context.Context) error
	done   chan struct{}

	mu      sync.Mutex
	past    history.Past
	attempt int
	spans   []history.Span // of the current attempt
	phase   phases.Phase
	since   time.Time
	reason  string // of the launch's end
}

// memoryLimit bounds each word with the database; a disk that hangs is not
// waited for longer.
const memoryLimit = 5 * time.Second

// openMemory opens the history; where that fails it returns a memory that
// knows nothing and keeps nothing.
func openMemory(s Setup, launch string, report func(error)) *memory {
	m := &memory{
		launch: launch, name: s.Name, report: report,
		writes: make(chan func(context.Context) error, 256), done: make(chan struct{}),
		asked: keyOf(s),
	}
	go m.run()
	ctx, cancel := context.WithTimeout(context.Background(), memoryLimit)
	defer cancel()
	db, err := history.Open(ctx, s.State.History())
	if err != nil {
		m.fail(err)
		return m
	}
	m.db = db
	if m.past, err = db.Past(ctx, m.asked); err != nil {
		m.fail(err)
	}
	return m
}

func keyOf(s Setup) history.Key {
	c := s.command
	if !c.SGLang() {
		c = sglangcmd.Parse(s.Argv, s.Env, s.Dir)
	}
	var names []string
	for _, p := range s.Patches {
		names = append(names, p.Label())
	}
	return history.Key{
		Machine: history.Machine(s.Devices), Model: c.Server().Model,
		Flags: history.FlagsDigest(c.Args, s.Env), Patches: history.PatchSet(names),
	}
}

func (m *memory) fail(err error) {
	m.once.Do(func() { m.report(err) })
}

// run writes what is handed over, off the loop, until close.
func (m *memory) run() {
	defer close(m.done)
	for write := range m.writes {
		if m.db == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), memoryLimit)
		if err := write(ctx); err != nil {
			m.fail(err)
		}
		cancel()
	}
	if m.db != nil {
		_ = m.db.Close()
	}
}

// write hands over one record without ever waiting; a database that hangs
// loses history, not a launch.
func (m *memory) write(record func(context.Context) error) {
	select {
	case m.writes <- record:
	default:
		m.fail(fmt.Errorf("cannot keep the history: the disk does not take it in time"))
	}
}

// before tells what earlier launches leave to this one.
func (m *memory) before(window time.Duration) Begin {
	if m.db == nil {
		return Begin{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), memoryLimit)
	defer cancel()
	var b Begin
	if good, ok, err := m.db.LastGood(ctx, m.name); err != nil {
		m.fail(err)
	} else if ok {
		b.LastGood = &LastGood{Changed: !m.asked.SameServer(good.Key)}
		for _, p := range good.Patches {
			b.LastGood.Patches = append(b.LastGood.Patches, p.Name)
		}
	}
	earlier, err := m.db.Earlier(ctx, m.name, m.asked, time.Now().Add(-window))
	if err != nil {
		m.fail(err)
	} else if len(earlier.Spawns) > 0 {
		b.Earlier = &Earlier{Spawns: earlier.Spawns, Cause: earlier.Fingerprint, Same: earlier.Same}
	}
	return b
}

// limits are the floors as history raises them.
func (m *memory) limits() map[phases.Phase]Limit {
	floors := map[phases.Phase]history.Limit{}
	for p, l := range Floors() {
		floors[p] = history.Limit{Quiet: l.Quiet, Timeout: l.Timeout}
	}
	learned := map[phases.Phase]Limit{}
	for p, l := range m.past.Limits(floors) {
		learned[p] = Limit{Quiet: l.Quiet, Timeout: l.Timeout}
	}
	return learned
}

// begun records the launch itself.
func (m *memory) begun(r LaunchRecord) {
	l := history.Launch{ID: r.ID, Name: r.Name, Command: r.Command, Key: m.asked, Began: r.Time}
	m.write(func(ctx context.Context) error { return m.db.RecordLaunch(ctx, l) })
}

// told takes every report of the machine; some are history.
func (m *memory) told(e envelope) {
	field := func(name string) string { s, _ := e.Fields[name].(string); return s }
	switch e.Event {
	case "attempt_started":
		m.begin(e.Attempt, e.Time)
	case "phase":
		if p, err := phases.ParsePhase(field("phase")); err == nil {
			m.enter(p, e.Time)
		}
	case "server_ready":
		m.enter(phases.Ready, e.Time)
		a := history.Attempt{N: e.Attempt, Ready: e.Time}
		m.write(func(ctx context.Context) error { return m.db.RecordAttempt(ctx, m.launch, a) })
	case "patch":
		m.patch(e.Attempt, history.Patch{Name: field("patch"), State: field("state"), Effect: field("effect")})
	case "attempt_ended":
		m.end(e, field)
	case "gave_up", "launch_ended":
		m.mu.Lock()
		m.reason = e.Text
		m.mu.Unlock()
	}
}

func (m *memory) begin(attempt int, at time.Time) {
	m.mu.Lock()
	m.attempt, m.spans, m.phase, m.since = attempt, nil, phases.Starting, at
	m.mu.Unlock()
	a := history.Attempt{N: attempt, Key: m.asked, Began: at}
	m.write(func(ctx context.Context) error { return m.db.RecordAttempt(ctx, m.launch, a) })
}

// enter closes the span of the phase before.
func (m *memory) enter(p phases.Phase, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p <= m.phase {
		return
	}
	m.spans = append(m.spans, history.Span{Phase: m.phase, Began: m.since, Took: at.Sub(m.since), Complete: true})
	m.phase, m.since = p, at
}

func (m *memory) patch(attempt int, p history.Patch) {
	if p.Name == "" {
		return
	}
	a := history.Attempt{N: attempt, Patches: []history.Patch{p}}
	m.write(func(ctx context.Context) error { return m.db.RecordAttempt(ctx, m.launch, a) })
}

func (m *memory) end(e envelope, field func(string) string) {
	m.mu.Lock()
	spans := append(m.spans, history.Span{Phase: m.phase, Began: m.since, Took: e.Time.Sub(m.since)})
	m.spans = nil
	m.mu.Unlock()
	a := history.Attempt{
		N: e.Attempt, Ended: e.Time, Outcome: field("outcome"), Cause: field("cause"), Fingerprint: field("fingerprint"),
		Phase: field("phase"), Rank: field("rank"), Text: mask.String(field("text")),
	}
	m.write(func(ctx context.Context) error {
		if err := m.db.RecordAttempt(ctx, m.launch, a); err != nil {
			return err
		}
		return m.db.RecordPhases(ctx, m.launch, a.N, spans...)
	})
}

// numbers keeps the figures that the output printed.
func (m *memory) numbers(attempt int, figures map[string]float64) {
	var all []history.Number
	for name, value := range figures {
		all = append(all, history.Number{Name: name, Value: value})
	}
	if len(all) > 0 {
		m.write(func(ctx context.Context) error { return m.db.RecordNumbers(ctx, m.launch, attempt, all...) })
	}
}

// ended records how the launch ended, and lets the writer finish.
func (m *memory) ended(code int) {
	m.mu.Lock()
	reason := m.reason
	m.mu.Unlock()
	l := history.Launch{ID: m.launch, Ended: time.Now(), Code: &code, Reason: mask.String(reason)}
	m.write(func(ctx context.Context) error { return m.db.RecordLaunch(ctx, l) })
	close(m.writes)
	select {
	case <-m.done:
	case <-time.After(memoryLimit):
	}
}

// addTo adds to what a person is told what only the past knows: how long the
// phase still takes, and that one was slower than usual.
func (m *memory) addTo(r Report, at time.Time) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.Event {
	case "progress":
		done, _ := r.Fields["done"].(int64)
		total, _ := r.Fields["total"].(int64)
		e, ok := m.past.Estimate(m.phase, history.Progress{Done: done, Total: total}, at.Sub(m.since))
		if ok && r.Text != "" && done < total {
			return r.Text + ", " + e.String()
		}
	case "phase":
		before, _ := r.Fields["before"].(string)
		seconds, _ := r.Fields["seconds"].(float64)
		p, err := phases.ParsePhase(before)
		if err != nil {
			return r.Text
		}
		if d, ok := m.past.Drift(p, time.Duration(seconds*float64(time.Second))); ok {
			return r.Text + "; " + d.String()
		}
	}
	return r.Text
}
