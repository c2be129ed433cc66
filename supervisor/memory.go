package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/mask"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

// memory is the launch's place in the history: what earlier launches teach,
// and what this one leaves to the next. It is a convenience, never a
// condition; what the database refuses is told once and then done without.
type memory struct {
	launch string
	name   string
	asked  history.Key  // as the launch was asked for; its caches are unknown
	look   surroundings // finds out what a start finds
	tell   func(text string)

	once   sync.Once
	db     *history.DB // nil where there is none
	writes chan func(context.Context) error
	done   chan struct{}

	mu     sync.Mutex
	closed bool
	past   history.Past
	sound  map[string]float64     // figures of the newest answers that were checked
	story  story                  // of the current attempt
	ended  map[int][]history.Span // by attempt, those that wait to be written
	reason string                 // of the launch's end
}

// Bounds of what the history may cost a launch: a disk that hangs is waited
// for no longer, and what it does not take is lost to the history alone.
const (
	memoryLimit = 5 * time.Second
	memoryDepth = 256 // records that wait
)

// openMemory opens the history; where that fails it returns a memory that
// knows nothing and keeps nothing. tell reaches a person.
func openMemory(s Setup, launch, private string, tell func(string)) *memory {
	m := &memory{
		launch: launch, name: s.Name, tell: tell,
		writes: make(chan func(context.Context) error, memoryDepth), done: make(chan struct{}),
		look: surroundings{s, private}, ended: map[int][]history.Span{},
	}
	ctx, cancel := context.WithTimeout(context.Background(), memoryLimit)
	defer cancel()
	version := make(chan string, 1)
	go func() { version <- m.look.version(ctx) }()
	db, err := history.Open(ctx, s.State.History())
	m.asked = keyOf(s)
	m.asked.Version = <-version
	m.db = db
	go m.run()
	switch {
	case err != nil:
		m.fail(err)
		return m
	case db.Aside != "":
		m.tell(fmt.Sprintf("the history was damaged; it is kept as %s and begins anew", db.Aside))
	}
	m.recall(ctx, m.asked)
	return m
}

func keyOf(s Setup) history.Key {
	c := s.parsed()
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
	m.once.Do(func() { m.tell(err.Error()) })
}

// recall reads what is known of a key. Where that fails, what was known before
// stays.
func (m *memory) recall(ctx context.Context, key history.Key) {
	if m.db == nil {
		return
	}
	past, err := m.db.Past(ctx, key)
	if err != nil {
		m.fail(err)
		return
	}
	sound, err := m.db.Checked(ctx, key.Model)
	if err != nil {
		m.fail(err)
		return
	}
	m.mu.Lock()
	m.past, m.sound = past, sound
	m.mu.Unlock()
}

// run writes what is handed over, off the loop, until the launch has ended.
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
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enqueue(record)
}

// enqueue is write for a caller that holds mu.
func (m *memory) enqueue(record func(context.Context) error) {
	if m.closed {
		return // news of an attempt that nobody waits for any more
	}
	select {
	case m.writes <- record:
	default:
		go m.fail(errors.New("cannot keep the history: the disk does not take it in time"))
	}
}

// before tells what earlier launches leave to this one.
func (m *memory) before(window time.Duration) machine.Begin {
	if m.db == nil {
		return machine.Begin{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), memoryLimit)
	defer cancel()
	var b machine.Begin
	if good, ok, err := m.db.LastGood(ctx, m.name); err != nil {
		m.fail(err)
	} else if ok {
		b.LastGood = &machine.LastGood{Changed: !m.asked.SameServer(good.Key), Patches: good.Key.PatchNames(), Differs: m.differs(ctx, good)}
	}
	earlier, err := m.db.Earlier(ctx, m.name, m.asked, time.Now().Add(-window))
	if err != nil {
		m.fail(err)
	} else if len(earlier.Spawns) > 0 {
		b.Earlier = &machine.Earlier{Spawns: earlier.Spawns, Cause: earlier.Fingerprint, Same: earlier.Same}
	}
	return b
}

// limits are the floors as history raises them.
func (m *memory) limits() map[phases.Phase]machine.Limit {
	floors := map[phases.Phase]history.Limit{}
	for p, l := range machine.Floors() {
		floors[p] = history.Limit{Quiet: l.Quiet, Timeout: l.Timeout}
	}
	learned := map[phases.Phase]machine.Limit{}
	for p, l := range m.past.Limits(floors) {
		learned[p] = machine.Limit{Quiet: l.Quiet, Timeout: l.Timeout}
	}
	return learned
}

// begun records the launch itself.
func (m *memory) begun(r LaunchRecord) {
	host, _ := os.Hostname()
	l := history.Launch{ID: r.ID, Name: r.Name, Host: host, Command: r.Command, Key: m.asked, Began: r.Time}
	m.write(func(ctx context.Context) error { return m.db.RecordLaunch(ctx, l) })
}

// finish records how the launch ended, forgets the oldest launches, and lets
// the writer come to its end. Nothing is recorded after it.
func (m *memory) finish(code int) {
	m.mu.Lock()
	l := history.Launch{ID: m.launch, Ended: time.Now(), Code: &code, Reason: mask.String(m.reason)}
	m.enqueue(func(ctx context.Context) error { return m.db.RecordLaunch(ctx, l) })
	m.enqueue(func(ctx context.Context) error { return m.db.Forget(ctx, history.Remembered) })
	if !m.closed {
		close(m.writes)
	}
	m.closed = true
	m.mu.Unlock()
	select {
	case <-m.done:
	case <-time.After(memoryLimit):
	}
}
