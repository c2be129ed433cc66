package supervisor

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/mask"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

// story is the current attempt as the history sees it.
type story struct {
	n       int
	key     history.Key // as it runs
	found   warmth      // of the caches, before it began
	inForce []string    // patches
	phase   phases.Phase
	since   time.Time // of the phase
	book    spanBook
}

// told takes every report of the machine; some are history.
func (m *memory) told(e envelope) {
	switch e.Event {
	case "attempt_started":
		m.begin(e)
	case "phase":
		m.enter(e, e.Word("before"), e.Word("phase"), "seconds")
	case "degraded":
		m.record(history.Attempt{N: e.Attempt, Changes: changesOf(e)})
	case "server_ready":
		m.record(history.Attempt{N: e.Attempt, Ready: e.Time})
		m.enter(e, e.Word("before"), phases.Ready.String(), "phase_seconds")
	case "checked":
		m.checked(e)
	case "patch":
		m.patch(e.Attempt, history.Patch{Name: e.Word("patch"), State: e.Word("state"), Effect: e.Word("effect"), Output: e.Word("output_checked")})
		m.remember(e)
	case "attempt_ended":
		m.end(e)
	case "gave_up", "launch_ended":
		m.mu.Lock()
		if e.Text != "" {
			m.reason = e.Text
		}
		m.mu.Unlock()
	}
}

// record writes what is known of an attempt.
func (m *memory) record(a history.Attempt) {
	m.write(func(ctx context.Context) error { return m.db.RecordAttempt(ctx, m.launch, a) })
}

func (m *memory) begin(e envelope) {
	key := m.asked
	key.Patches = "" // those in force are known when the server is asked for
	m.mu.Lock()
	m.story = story{n: e.Attempt, key: key, since: e.Time, book: newSpanBook()}
	m.mu.Unlock()
	m.record(history.Attempt{N: e.Attempt, Key: key, Began: e.Time, Changes: changesOf(e)})
}

// changesOf reads the changes of a report, as the machine gives them
// or as the journal has kept them.
func changesOf(e envelope) (all []history.Change) {
	var changes []machine.Change
	if data, err := json.Marshal(e.Fields["changes"]); err != nil || json.Unmarshal(data, &changes) != nil {
		return nil
	}
	for _, c := range changes {
		all = append(all, history.Change{Rung: c.Rung, Text: mask.String(c.Text)})
	}
	return all
}

// measure looks at the caches before an attempt, and asks what starts with
// such caches took. It may take some seconds and runs off the loop.
func (m *memory) measure(ctx context.Context, attempt int) {
	found := m.look.warmth(ctx)
	key := m.asked
	key.Caches = found.caches(false)
	m.recall(ctx, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.story.n == attempt {
		m.story.found, m.story.key.Caches = found, key.Caches
	}
}

// spawning takes the attempt as it will run: with the patches in force and all
// that rungs have changed. What a rung makes of the flags is another server.
func (m *memory) spawning(attempt int, setup Setup, s machine.Spawn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.story.n != attempt {
		return
	}
	// Caches of the launch's own change how warm they are, and nothing else.
	public := slices.DeleteFunc(s.Environ(machine.Private), func(kv string) bool { return strings.Contains(kv, machine.Private) })
	key := m.asked
	key.Patches = history.PatchSet(m.story.inForce)
	key.Caches = m.story.found.caches(len(public) < len(s.Env))
	key.Flags = history.FlagsDigest(withFlags(setup.parsed().Args, s.Flags), slices.Concat(setup.Env, public))
	m.rekey(key)
	if key.Flags != m.asked.Flags {
		m.enqueue(func(ctx context.Context) error { m.recall(ctx, key); return nil })
	}
}

// rekey says what the attempt is like. The caller holds mu.
func (m *memory) rekey(key history.Key) {
	m.story.key = key
	m.past = m.past.At(key)
	a := history.Attempt{N: m.story.n, Key: key}
	m.enqueue(func(ctx context.Context) error { return m.db.RecordAttempt(ctx, m.launch, a) })
}

// compiling takes note of programs that compile kernels: the caches that this
// attempt found were none of its own.
func (m *memory) compiling(attempt int, programs []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	cold := m.story.key.Caches.JIT == history.Cold
	if m.story.n != attempt || cold || m.story.phase >= phases.Ready || !compilesKernels(programs) {
		return
	}
	key := m.story.key
	key.Caches.JIT = history.Cold
	m.rekey(key)
}

// compilesKernels leaves out what runs at warm starts too: ninja looks whether
// anything is to be done, Python's find_library asks gcc and ld.
func compilesKernels(programs []string) bool {
	for _, p := range programs {
		switch p {
		case "nvcc", "cicc", "ptxas", "cudafe++", "fatbinary", "nvlink", "hipcc", "cc1plus":
			return true
		}
	}
	return false
}

// seen takes what the output says of ranks and counters.
func (m *memory) seen(attempt int, o phases.Observation, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if attempt == m.story.n {
		m.keep(m.story.book.see(o, at)...)
	}
}

// enter closes the span of the phase before. How long that took is the
// machine's word: its clock leaves out what nobody watched.
func (m *memory) enter(e envelope, before, next, seconds string) {
	to, err := phases.ParsePhase(next)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if from, err := phases.ParsePhase(before); err == nil {
		m.keep(m.span(e, from, seconds, true))
	}
	m.keep(m.story.book.close(to, e.Time)...)
	m.story.phase, m.story.since = to, e.Time
	at := history.Attempt{N: e.Attempt, Phase: next} // for whoever finds it killed
	m.enqueue(func(ctx context.Context) error { return m.db.RecordAttempt(ctx, m.launch, at) })
}

// span is a phase of the launch as a whole, as a report tells its length.
func (m *memory) span(e envelope, p phases.Phase, seconds string, complete bool) history.Span {
	took := secondsOf(e.Fields, seconds)
	return m.story.book.counted(history.Span{
		Phase: p, Began: e.Time.Add(-took), Took: took, Quiet: secondsOf(e.Fields, "quiet"), Complete: complete,
	})
}

func secondsOf(fields map[string]any, name string) time.Duration {
	s, _ := fields[name].(float64)
	return time.Duration(s * float64(time.Second))
}

// keep writes spans at once, so that a supervisor that dies loses none. Those
// that end together are one record. Of an attempt that was taken up as it is the
// begin was not heard, and how long reading takes is nothing to learn. The caller
// holds mu.
func (m *memory) keep(spans ...history.Span) {
	attempt := m.story.n
	if attempt == 0 {
		return
	}
	waiting := len(m.ended[attempt]) > 0
	m.ended[attempt] = append(m.ended[attempt], spans...)
	if waiting || len(spans) == 0 {
		return
	}
	m.enqueue(func(ctx context.Context) error {
		m.mu.Lock()
		spans := m.ended[attempt]
		delete(m.ended, attempt)
		m.mu.Unlock()
		return m.db.RecordPhases(ctx, m.launch, attempt, spans...)
	})
}

func (m *memory) patch(attempt int, p history.Patch) {
	if p.Name == "" {
		return
	}
	if p.State == "applied" {
		m.mu.Lock()
		m.story.inForce = append(m.story.inForce, p.Name)
		m.mu.Unlock()
	}
	m.record(history.Attempt{N: attempt, Patches: []history.Patch{p}})
}

func (m *memory) end(e envelope) {
	m.record(history.Attempt{
		N: e.Attempt, Ended: e.Time, Outcome: e.Word("outcome"), Cause: e.Word("cause"), Fingerprint: e.Word("fingerprint"),
		Phase: e.Word("phase"), Rank: e.Word("rank"), Text: mask.String(e.Word("text")),
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, err := phases.ParsePhase(e.Word("phase")); err == nil && e.Word("outcome") != string(machine.OutcomeRefused) {
		m.keep(m.span(e, last, "phase_seconds", false))
	}
	m.keep(m.story.book.cut(e.Time)...)
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
