package supervisor

import (
	"fmt"
	"strings"
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
	now   time.Time
	roll  float64
	out   []Effect

	attempt  int
	begunAt  time.Time
	deadline time.Time
	stop     *StopAsked
	suspects []string // patches that a failure pointed to; not applied again
	budget   budget
	degraded []string // what differs from what was asked for
	run      run
	code     int
}

// NewMachine returns a machine that has seen nothing. It refuses options that
// would make a decision impossible.
func NewMachine(opt Options) (*Machine, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	return &Machine{opt: opt, state: StateIdle}, nil
}

// State returns where the launch stands.
func (m *Machine) State() State { return m.state }

// Attempt returns the number of the current attempt, from 1; 0 before the first.
func (m *Machine) Attempt() int { return m.attempt }

// Phase returns the phase of the current attempt.
func (m *Machine) Phase() phases.Phase { return m.run.phase }

// Degraded lists what differs from what was asked for; empty = nothing.
func (m *Machine) Degraded() []string { return m.degraded }

// Ended returns the exit code once the launch has ended.
func (m *Machine) Ended() (code int, ok bool) { return m.code, m.state == StateEnded }

// Deadline returns the one moment at which the machine wants a Tick if nothing
// else happens before.
func (m *Machine) Deadline() (time.Time, bool) { return m.deadline, !m.deadline.IsZero() }

// Step takes one event and returns what is to be done about it.
func (m *Machine) Step(e Event) []Effect {
	m.out = nil
	if e.Attempt != 0 && e.Attempt != m.attempt {
		return nil // news of an earlier attempt
	}
	m.now, m.roll = e.At, e.Roll
	switch b := e.Body.(type) {
	case Begin:
		m.begunAt = m.now
		m.say("launch_started", "")
		m.nextAttempt()
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
	case Proven:
		m.proven(b)
	case Activity:
		m.activity(b)
	case RankGone:
		m.rankGone(b)
	case Hardware:
		m.hardware(b)
	case SourceLost:
		m.say("source_lost", fmt.Sprintf("%s is silent: %s", b.Source, b.Reason), "source", b.Source)
	case Exited:
		m.exited(b.Status)
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
	case Tick:
		m.tick()
	default:
		panic(fmt.Sprintf("internal error: the machine does not know %T", b))
	}
	m.rearm()
	return m.out
}

// enter is the only way to change the state. The deadline of the new state is
// set by rearm from waits; zero = it waits for an answer without a limit.
func (m *Machine) enter(s State, limit time.Duration) {
	m.state = s
	m.deadline = time.Time{}
	if limit > 0 {
		m.deadline = m.now.Add(limit)
	}
}

// rearm computes the deadline where it follows from facts rather than from the
// moment of entering.
func (m *Machine) rearm() {
	if m.state == StateStarting || m.state == StateUp {
		m.deadline = m.nextLimit()
	}
}

func (m *Machine) do(a Act) { m.out = append(m.out, Effect{m.attempt, a}) }

// say reports one thing; pairs are name, value.
func (m *Machine) say(event, text string, pairs ...any) {
	fields := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		fields[pairs[i].(string)] = pairs[i+1]
	}
	if len(fields) == 0 {
		fields = nil
	}
	m.do(Report{Event: event, Text: text, Fields: fields})
}

// nextAttempt begins an attempt: nothing of the one before may be left.
func (m *Machine) nextAttempt() {
	m.attempt++
	m.run = run{phase: phases.Starting, phaseAt: m.now, moved: m.now}
	m.say("attempt_started", "")
	m.enter(StatePreflight, checkLimit)
	m.do(Preflight{})
}

func (m *Machine) preflighted(b Preflighted) {
	if m.state != StatePreflight {
		return
	}
	switch {
	case m.stop != nil:
		m.revert()
	case b.Refused != "":
		m.run.outcome, m.run.cause, m.run.why = OutcomeRefused, b.Cause, b.Refused
		m.revert()
	default:
		m.enter(StatePatching, patchLimit)
		m.do(ApplyPatch{Without: m.suspects})
	}
}

func (m *Machine) patched(b Patched) {
	if m.state != StatePatching {
		return
	}
	m.run.patches = b.Active
	for _, p := range b.Active {
		m.say("patch", fmt.Sprintf("patch %s is applied", p.Name), "patch", p.Name, "state", "applied", "files", p.Files)
	}
	for _, reason := range b.Skipped {
		m.say("patch", "running without a patch: "+reason, "state", "skipped", "reason", reason)
		m.degrade("without patch: " + reason)
	}
	if m.stop != nil {
		m.revert()
		return
	}
	m.budget.spawn(m.now)
	m.run.spawning = true
	m.enter(StateStarting, 0)
	m.do(Spawn{})
}

func (m *Machine) patchRefused(b PatchRefused) {
	if m.state != StatePatching {
		return
	}
	m.say("patch", b.Reason, "state", "refused", "reason", b.Reason)
	m.run.outcome, m.run.why, m.run.refusal = OutcomeRefused, b.Reason, codePatch
	m.revert()
}

func (m *Machine) spawned(p wire.Proc) {
	if m.state != StateStarting || !m.run.spawning {
		return
	}
	m.run.spawning = false
	m.run.server = &p
	m.run.spawnedAt, m.run.phaseAt, m.run.moved = m.now, m.now, m.now
	m.say("phase", fmt.Sprintf("attempt %d: server is process %d", m.attempt, p.PID), "phase", phases.Starting.String(), "pid", p.PID)
	if m.stop != nil {
		m.endAttempt(OutcomeStopped, "", m.stop.By, true)
	}
}

func (m *Machine) spawnFailed(b SpawnFailed) {
	if m.state != StateStarting || !m.run.spawning {
		return
	}
	m.run.spawning = false
	m.run.outcome, m.run.why, m.run.person = OutcomeRefused, b.Reason, true
	m.revert()
}

// seen takes a fact from the output.
func (m *Machine) seen(o phases.Observation) {
	if m.state != StateStarting && m.state != StateUp {
		if o.Kind == phases.KindDrain {
			m.run.drain = true
		}
		return
	}
	switch o.Kind {
	case phases.KindFault:
		m.fault(o)
	case phases.KindDrain:
		m.run.drain = true
		m.say("stopping", "the server began an orderly shutdown that sglaunch did not ask for")
	case phases.KindReady:
		m.serverReady("the server says that it is ready", o.Rule)
	case phases.KindActivity:
		m.movedBy(o.Activity)
		m.say("progress", "", "activity", o.Activity, "rank", o.Rank)
	case phases.KindNote, phases.KindDrift:
		m.note(o)
	case phases.KindPhase, phases.KindProgress, phases.KindServing:
		m.movedBy(o.Rule)
	}
	m.reach(o)
	if o.Kind == phases.KindProgress {
		m.tellProgress(o)
	}
}

// reach follows the phase that an observation tells.
func (m *Machine) reach(o phases.Observation) {
	if o.Phase <= m.run.phase && m.run.ready() {
		return
	}
	if o.Phase > m.run.reached {
		m.run.reached = o.Phase
	}
	if o.Phase == m.run.phase {
		return
	}
	before, took := m.run.phase, m.now.Sub(m.run.phaseAt)
	m.run.phase, m.run.phaseAt, m.run.warned = o.Phase, m.now, false
	if o.Phase == phases.Ready {
		return // told by serverReady
	}
	m.say("phase", fmt.Sprintf("%s (%s took %s)", o.Phase, before, round(took)),
		"phase", o.Phase.String(), "before", before.String(), "seconds", took.Seconds(), "rank", o.Rank)
}

// movedBy takes note of proof of progress.
func (m *Machine) movedBy(what string) {
	m.run.moved, m.run.movedBy = m.now, what
	m.run.fatal = nil // something went on after the fatal line: it was not fatal
}

func (m *Machine) note(o phases.Observation) {
	m.say("fault", o.Text, "rule", o.Rule, "line", o.Line, "rank", o.Rank, "severity", string(o.Kind))
}

// fault takes a failure-indicating line. It colours the verdict; it kills
// nothing unless it is SGLang's own fatal word and the server stays.
func (m *Machine) fault(o phases.Observation) {
	if o.Echo {
		return
	}
	m.say("fault", fmt.Sprintf("line %d, %s: %s", o.Line, o.Rank, o.Text),
		"rule", o.Rule, "cause", o.Cause, "line", o.Line, "rank", o.Rank, "certain", o.Certain)
	if o.Certain && m.run.fatal == nil {
		m.run.fatal, m.run.fatalAt = &o, m.now
	}
}

func (m *Machine) tellProgress(o phases.Observation) {
	if m.now.Sub(m.run.told) < 10*time.Second && o.Done != o.Total {
		return
	}
	m.run.told = m.now
	m.say("progress", fmt.Sprintf("%s %d of %d %s", o.RankPhase, o.Done, o.Total, o.Unit),
		"done", o.Done, "total", o.Total, "unit", o.Unit, "rank", o.Rank)
}

// answered takes HTTP's word where the output has none.
func (m *Machine) answered(b Answered) {
	if m.state == StateStarting && b.Ready {
		m.serverReady(fmt.Sprintf("%s answers %d", b.Endpoint, b.Status), b.Endpoint)
	}
}

func (m *Machine) serverReady(how, rule string) {
	if m.run.ready() {
		return
	}
	took := m.now.Sub(m.run.spawnedAt)
	m.run.readyAt, m.run.phaseAt = m.now, m.now
	m.run.phase = phases.Ready
	m.run.reached = max(m.run.reached, phases.Ready)
	m.movedBy("ready")
	m.enter(StateUp, 0)
	text := fmt.Sprintf("ready after %s: %s", round(took), how)
	if len(m.degraded) > 0 {
		text = fmt.Sprintf("ready after %s, degraded (%s): %s", round(took), strings.Join(m.degraded, "; "), how)
		m.say("degraded", "", "what", m.degraded)
	}
	m.say("server_ready", text, "seconds", took.Seconds(), "rule", rule, "degraded", len(m.degraded) > 0)
	m.say("checked", "", "output_check", "off")
	m.say("announced", "")
}

// proven takes the verdict on a patch's effect and applies its policy.
func (m *Machine) proven(b Proven) {
	m.say("patch", fmt.Sprintf("patch %s: %s%s", b.Patch, b.Effect, because(b.Reason)), "patch", b.Patch, "effect", b.Effect)
	if !b.Enforce || b.Effect == "effective" || (m.state != StateStarting && m.state != StateUp) {
		return
	}
	for _, p := range m.run.patches {
		if p.Name != b.Patch {
			continue
		}
		switch p.OnUnproven {
		case "fail":
			m.run.refusal = codePatch
			m.fail(OutcomeUnhealthy, "patch_ineffective", fmt.Sprintf("patch %s did not take effect%s", b.Patch, because(b.Reason)))
		case "relaunch":
			m.fail(OutcomeUnhealthy, "patch_ineffective", fmt.Sprintf("patch %s did not take effect%s", b.Patch, because(b.Reason)))
		default:
			m.degrade(fmt.Sprintf("patch %s: %s", b.Patch, b.Effect))
		}
	}
}

func (m *Machine) degrade(what string) {
	for _, d := range m.degraded {
		if d == what {
			return
		}
	}
	m.degraded = append(m.degraded, what)
}

func (m *Machine) rankGone(b RankGone) {
	if m.state != StateStarting && m.state != StateUp {
		return
	}
	m.say("fault", fmt.Sprintf("%s (process %d) is gone%s", b.Rank, b.Proc.PID, how(b.Status)), "rank", b.Rank, "pid", b.Proc.PID)
	if m.run.gone == nil {
		m.run.gone, m.run.goneAt = &b, m.now
	}
}

func (m *Machine) hardware(b Hardware) {
	m.say("fault", b.Text, "gpu", b.GPU, "xid", b.Xid)
	if m.state != StateStarting && m.state != StateUp {
		return
	}
	if !b.Lost && !b.Person {
		return
	}
	cause := "xid"
	if b.Lost {
		cause = "gpu_lost"
	}
	m.run.person = b.Person
	m.fail(OutcomeCrashed, cause, b.Text)
}

// stopAsked begins the end of the launch, wherever it stands.
func (m *Machine) stopAsked(b StopAsked) {
	again := m.stop != nil
	m.stop = &b
	force := b.Force || again
	if !again {
		m.say("stopping", "stopping: "+b.By, "by", b.By)
	}
	switch m.state {
	case StateIdle, StateBackoff:
		m.finish(codeStopped, "stopped as asked")
	case StateStarting, StateUp:
		if m.run.spawning {
			return // the server is about to exist; it is stopped when it does
		}
		m.endAttempt(OutcomeStopped, "", b.By, !force)
	case StateEvidence, StateStopping:
		if force {
			m.kill()
		}
	}
}

// tick acts on the passing of the deadline.
func (m *Machine) tick() {
	if m.deadline.IsZero() || m.now.Before(m.deadline) {
		return
	}
	m.deadline = time.Time{}
	switch m.state {
	case StatePreflight:
		m.preflighted(Preflighted{}) // a check that hangs refuses nothing
	case StatePatching:
		m.patchRefused(PatchRefused{Reason: "applying the patches took longer than " + patchLimit.String()})
	case StateStarting, StateUp:
		m.limitPassed()
	case StateEvidence:
		m.terminate()
	case StateStopping:
		m.kill()
	case StateKilling:
		m.killOverdue()
	case StateReleasing:
		m.notReleased(NotReleased{Holder: "unknown: the question was not answered"})
	case StateReverting:
		m.revertFailed(RevertFailed{Reason: "restoring the files took longer than " + patchLimit.String()})
	case StateBackoff:
		m.nextAttempt()
	}
}

// resumed takes over from a supervisor that died. What it had asked for and
// not seen answered is asked for again; every effect bears that.
func (m *Machine) resumed(b Resumed) {
	m.say("supervisor_restarted", fmt.Sprintf("supervisor is back (restart %d)", b.Restarts), "restarts", b.Restarts)
	m.run.moved = m.now // patience counts what was watched
	known := b.Attempt == m.attempt
	switch m.state {
	case StateIdle:
		m.begunAt = m.now
		m.nextAttempt()
	case StatePreflight:
		m.do(Preflight{})
	case StatePatching:
		m.do(ApplyPatch{Without: m.suspects})
	case StateStarting, StateUp:
		if m.run.spawning && known && b.Server != nil {
			m.spawned(*b.Server)
		} else if m.run.spawning {
			m.do(Spawn{})
		}
	case StateEvidence:
		m.do(GatherEvidence{Reason: m.run.why, Limit: evidenceLimit})
	case StateKilling:
		m.do(KillTree{Limit: killLimit})
	case StateReleasing:
		m.do(AwaitRelease{Limit: m.opt.Stop.Release})
	case StateReverting:
		m.do(RevertPatch{})
	case StateEnded:
		m.do(Finish{Code: m.code})
	}
	if known && b.Exited != nil {
		m.exited(*b.Exited)
	}
	if known && b.TreeGone {
		m.treeGone()
	}
}
