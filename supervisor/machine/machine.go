package machine

import (
	"fmt"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// Machine decides everything about a launch. It reads no clock, no file and no
// randomness, starts nothing and waits for nothing: events go in, effects come
// out, and the same events give the same effects, live or replayed. It is used
// by one goroutine at a time.
type Machine struct {
	opt   Options
	state State
	out   []Effect // of the current step
	roll  float64  // of the current step

	wall     time.Time // of the newest event
	now      time.Time // the same, less the time that nobody watched: see advance
	deadline time.Time // on the clock of now; zero = none

	attempt  int
	stop     *StopAsked
	asks     int // how insistently the end was asked for
	lastGood *LastGood
	suspects []string // patches that a failure pointed to; not applied again
	doubted  bool     // answers were wrong in an attempt of this launch
	doubtful []string // patches that were in force then
	bisect   bisect
	steps    []step      // what rungs have changed
	spent    []int       // how often each rung was taken
	beside   []Neighbour // who left no room for the newest server
	budget   budget
	run      run
	code     int
}

// New returns a machine that has seen nothing. It refuses options that
// would make a decision impossible.
func New(opt Options) (*Machine, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	return &Machine{opt: opt, state: StateIdle}, nil
}

// Options returns what the machine decides by now.
func (m *Machine) Options() Options { return m.opt }

// Asks returns how insistently the end of the launch was asked for; 0 is not at all.
func (m *Machine) Asks() int { return m.asks }

// State returns where the launch stands.
func (m *Machine) State() State { return m.state }

// Attempt returns the number of the current attempt, from 1; 0 before the first.
func (m *Machine) Attempt() int { return m.attempt }

// Phase returns the phase of the current attempt.
func (m *Machine) Phase() phases.Phase { return m.run.Phase }

// Ended returns the exit code once the launch has ended.
func (m *Machine) Ended() (code int, ok bool) { return m.code, m.state == StateEnded }

// Deadline returns the one moment at which the machine wants a Tick if nothing
// else happens before.
func (m *Machine) Deadline() (time.Time, bool) {
	return m.wall.Add(m.deadline.Sub(m.now)), !m.deadline.IsZero()
}

// Step takes one event and returns what is to be done about it.
func (m *Machine) Step(e Event) []Effect {
	m.out, m.roll = nil, e.Roll
	m.advance(e.At)
	if e.Attempt != 0 && e.Attempt != m.attempt {
		return m.out // news of an earlier attempt
	}
	if _, resumed := e.Body.(Resumed); m.state == StateEnded && !resumed {
		return m.out
	}
	switch b := e.Body.(type) {
	case Begin:
		m.begin(b)
	case Resumed:
		m.resumed(b)
	case Preflighted:
		m.preflighted(b)
	case Patched:
		m.patched(b)
	case PatchRefused:
		m.patchRefused(b)
	case Spawned:
		m.spawned(b.Proc)
	case SpawnFailed:
		m.spawnFailed(b)
	case Seen:
		m.seen(b.Observation)
	case Answered:
		m.answered(b)
	case Checked:
		m.checked(b)
	case Working:
		m.working()
	case Proven:
		m.proven(b)
	case Activity:
		m.activity(b)
	case RankGone:
		m.rankGone(b)
	case Hardware:
		m.hardware(b)
	case SourceLost:
		m.say("source_lost", b.sentence(), "source", b.Source)
	case Exited:
		m.exited(b.Status)
	case Hearing:
		m.hearing()
	case Drained:
		m.drained(b)
	case TreeGone:
		m.treeGone()
	case TreeLeft:
		m.treeLeft(b)
	case Evidence:
		m.evidence(b)
	case Released:
		m.released(b)
	case NotReleased:
		m.notReleased(b)
	case Reverted:
		m.reverted()
	case RevertFailed:
		m.revertFailed(b)
	case StopAsked:
		m.stopAsked(b)
	case RestartAsked:
		m.restartAsked(b)
	case Reload:
		m.reload(b)
	case Tick:
		m.tick()
	default:
		panic(fmt.Sprintf("internal error: the machine does not know %T", b))
	}
	m.rearm()
	return m.out
}

// advance moves the machine's clock on by what was watched. A wall clock may be
// set, a host may sleep, a supervisor may be dead for an hour: an event that
// comes long after the one deadline was not waited for, and the time before it
// wears out nobody's patience.
func (m *Machine) advance(at time.Time) {
	at = at.Round(0) // replay has no other clock than the wall
	if m.wall.IsZero() {
		m.wall, m.now = at, at
		return
	}
	passed, due := at.Sub(m.wall), max(m.deadline.Sub(m.now), 0)
	switch {
	case passed < -lateness: // the clock was set back
		m.wall = at
	case passed < 0: // stamped before another event and told after it
	case !m.deadline.IsZero() && passed > due+lateness:
		m.wall = at
		m.say("source_lost", fmt.Sprintf("nobody watched for %s (a sleeping host, or a clock that was set); it does not count", round(passed)),
			"source", "clock", "seconds", passed.Seconds())
	default:
		m.wall, m.now = at, m.now.Add(passed)
	}
}

// enter is the only way to change the state. limit bounds the wait in it;
// where the bound follows from facts instead, rearm sets it.
func (m *Machine) enter(s State, limit time.Duration) {
	m.state = s
	m.deadline = time.Time{}
	if limit > 0 {
		m.deadline = m.now.Add(limit)
	}
}

// rearm computes the deadline of an attempt that runs.
func (m *Machine) rearm() {
	if m.running() {
		m.deadline = m.nextBound()
	}
}

// running reports whether there is a server, or about to be one, whose end has
// not begun.
func (m *Machine) running() bool {
	return m.state == StateStarting || m.state == StateChecking || m.state == StateUp
}

// spawnedYet reports whether this attempt has asked for a server: before that
// no output can be its own.
func (m *Machine) spawnedYet() bool { return m.run.Server != nil || m.run.spawning() || m.run.Ending }

func (m *Machine) do(a Act) { m.out = append(m.out, Effect{m.attempt, a}) }

// say reports one thing; pairs are name, value.
func (m *Machine) say(event, text string, pairs ...any) {
	var fields map[string]any
	for i := 0; i+1 < len(pairs); i += 2 {
		if fields == nil {
			fields = map[string]any{}
		}
		fields[pairs[i].(string)] = pairs[i+1]
	}
	m.do(Report{Event: event, Text: text, Fields: fields})
}

// The way up: preflight, patching, starting. What follows is in watching.go.

func (m *Machine) begin(b Begin) {
	if m.state != StateIdle {
		return
	}
	m.lastGood = b.LastGood
	m.budget.inherit(b.Earlier, m.now)
	m.say("launch_started", "")
	m.nextAttempt()
}

// nextAttempt begins an attempt: nothing of the one before may be left.
func (m *Machine) nextAttempt() {
	m.attempt++
	m.run = run{PhaseAt: m.now, Moved: m.now}
	if changes := m.Changes(); len(changes) > 0 {
		m.say("attempt_started", "", "changes", changes)
	} else {
		m.say("attempt_started", "")
	}
	m.enter(StatePreflight, CheckLimit+AnswerMargin)
	m.do(Preflight{Beside: m.beside})
}

func (m *Machine) preflighted(b Preflighted) {
	if m.state != StatePreflight {
		return
	}
	if b.Refused != "" {
		m.run.Outcome, m.run.Cause, m.run.Why, m.run.Proven = OutcomeRefused, b.Cause, b.Refused, true
		m.decide()
		return
	}
	m.shortOf(b.Memory)
	m.enter(StatePatching, PatchLimit+AnswerMargin)
	m.do(ApplyPatch{Without: m.without()})
}

func (m *Machine) patched(b Patched) {
	if m.state != StatePatching {
		return
	}
	m.run.Patches = b.Active
	for _, p := range b.Active {
		m.say("patch", fmt.Sprintf("patch %s is applied", p.Name), "patch", p.Name, "state", "applied", "files", p.Files)
	}
	for _, reason := range b.Skipped {
		m.say("patch", "running without a patch: "+reason, "state", "skipped", "reason", reason)
		m.odd("without patch: " + reason)
	}
	if m.stop != nil {
		m.revert()
		return
	}
	m.budget.spawn(m.now)
	m.beside = nil
	m.run.SpawnAsked = m.now
	m.enter(StateStarting, 0)
	m.do(m.spawn())
}

func (m *Machine) patchRefused(b PatchRefused) {
	if m.state != StatePatching {
		return
	}
	m.say("patch", b.Reason, "state", "refused", "reason", b.Reason)
	m.run.Outcome, m.run.Why, m.run.Patchless = OutcomeRefused, b.Reason, b.Reason
	m.revert()
}

func (m *Machine) spawned(p wire.Proc) {
	m.run.Server = &p
	if m.state != StateStarting || !m.run.spawning() {
		return // the shim was slow: the end of this attempt has begun, and takes the server along
	}
	m.run.SpawnAsked = time.Time{}
	m.run.SpawnedAt, m.run.PhaseAt, m.run.Moved = m.now, m.now, m.now
	m.say("phase", fmt.Sprintf("attempt %d: server is process %d", m.attempt, p.PID), "phase", phases.Starting.String(), "pid", p.PID)
	if m.stop != nil {
		m.endAttempt(m.stop.By)
	}
}

func (m *Machine) spawnFailed(b SpawnFailed) {
	if m.state != StateStarting || !m.run.spawning() {
		return
	}
	m.run.Outcome, m.run.Why, m.run.Person, m.run.Proven = OutcomeRefused, b.Reason, !b.Passing, true
	m.revert()
}
