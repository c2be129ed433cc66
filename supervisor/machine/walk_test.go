package machine

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// The walk takes every event in every situation that a launch can get into,
// true, late, repeated or out of place, and checks the invariants after each.
// A situation is what the machine knows without its times; two launches that
// know the same go on the same, so each situation is looked at once.

// guard watches a launch from outside and knows what must never happen.
type guard struct {
	Alive    int  // attempt whose server may be alive; 0 = none
	Born     bool // it exists for certain
	Exited   bool // its first process has ended
	Killing  bool // its tree is being killed
	Patched  bool // files may be changed
	Finished int  // how often the launch ended
	Stopped  bool // somebody asked for the end
}

// allows reports whether an honest shim could say b now. All else may be said
// at any time.
func (g guard) allows(m *Machine, b Body) bool {
	switch b.(type) {
	case Begin:
		return m.state == StateIdle || m.attempt == 1
	case Spawned:
		return g.Alive == m.attempt && g.Alive > 0 && !g.Exited
	case SpawnFailed:
		return g.Alive == m.attempt && g.Alive > 0 && !g.Born
	case Exited, RankGone:
		return g.Alive == m.attempt && g.Born && !g.Exited
	case TreeGone, TreeLeft:
		return g.Alive == m.attempt && g.Killing
	case Tick:
		return !m.deadline.IsZero()
	}
	return true
}

// before takes note of what an event makes true.
func (g *guard) before(b Body) {
	switch b.(type) {
	case Spawned:
		g.Born = true
	case SpawnFailed, TreeGone:
		g.Alive, g.Born, g.Exited, g.Killing = 0, false, false, false
	case Exited:
		g.Exited = true
	case Reverted:
		g.Patched = false
	case StopAsked:
		g.Stopped = true
	}
}

// after checks a step. It returns what is wrong, "" = nothing.
func (g *guard) after(m *Machine, e Event, was State, effects []Effect) string {
	if at, armed := m.Deadline(); armed && !at.After(e.At) {
		if _, tick := e.Body.(Tick); tick {
			return "the deadline after a tick is not later than the tick"
		}
	} else if !armed && waits(m) {
		return "it waits without a bound in " + string(m.state)
	}
	if _, resumed := e.Body.(Resumed); was == StateEnded && len(effects) > 0 && !resumed {
		return "a launch that has ended goes on"
	}
	for _, effect := range effects {
		if _, report := effect.Body.(Report); !report && effect.Attempt != m.attempt {
			return fmt.Sprintf("an effect for attempt %d in attempt %d", effect.Attempt, m.attempt)
		}
		if wrong := g.effect(m, e.Body, was, effect.Body); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (g *guard) effect(m *Machine, cause Body, was State, act Act) string {
	switch a := act.(type) {
	case ApplyPatch:
		if g.Alive != 0 {
			return "files are patched under a server that may be alive"
		}
		g.Patched = true
	case Spawn:
		_, resumed := cause.(Resumed)
		switch {
		case g.Alive != 0 && !(resumed && g.Alive == m.attempt && !g.Born):
			return "a second server while one may be alive"
		case g.Stopped && !resumed:
			return "a server is started after the end was asked for"
		case !resumed && launchesWithin(m) > m.opt.Attempts:
			return "more launches than allowed"
		}
		g.Alive = m.attempt
	case KillTree:
		if was == StateUp && isNews(cause) {
			return fmt.Sprintf("%T ends a healthy server", cause)
		}
		g.Killing = true
	case SignalServer, GatherEvidence:
		if was == StateUp && isNews(cause) {
			return fmt.Sprintf("%T ends a healthy server", cause)
		}
	case RevertPatch:
		if g.Alive != 0 {
			return "files are restored under a server that may be alive"
		}
	case Finish:
		if _, resumed := cause.(Resumed); !resumed {
			g.Finished++
		}
		switch {
		case g.Finished > 1:
			return "the launch ends twice"
		case g.Alive != 0 && a.Code != CodeHeld:
			return "the launch ends while a server may be alive, and does not say so"
		case g.Patched && a.Code != CodeHeld && a.Code != CodePatch:
			return "the launch ends with patched files, and does not say so"
		}
	case Report:
		if !slices.Contains(vocabulary, a.Event) {
			return fmt.Sprintf("%q is no event of the vocabulary", a.Event)
		}
	}
	return ""
}

func launchesWithin(m *Machine) (n int) {
	for _, at := range m.budget.Spawns {
		if m.now.Sub(at) < m.opt.Window {
			n++
		}
	}
	return n
}

// waits reports whether a state must have a bound: nothing that can hang holds
// a launch for ever. A server in service is waited for without one.
func waits(m *Machine) bool {
	switch m.state {
	case StateIdle, StateUp, StateEnded:
		return false
	case StateStarting:
		return m.opt.Act != "observe" // which has told all that it had to tell
	}
	return true
}

// isNews: what never ends a healthy server, with act = start.
func isNews(b Body) bool {
	switch b := b.(type) {
	case Seen, Answered, Checked, Working, Activity, SourceLost, Drained, Evidence, Released, NotReleased, TreeGone, Begin:
		return true
	case Hardware:
		return !b.Lost && !b.Person
	}
	return false
}

var vocabulary = strings.Fields(`launch_started attempt_started phase progress verdict server_ready checked announced fault
	evidence stopping tree_gone gpu_released patch decision attempt_ended degraded source_lost supervisor_restarted reloaded gave_up launch_ended`)

// situation is what a launch knows, without times.
type situation struct {
	guard
	State                                       State
	Attempt, Asks, Suspects, Out, Among, Steps  int
	Spawns, Same, NoProgress, Waits             int
	Phase                                       phases.Phase
	Outcome                                     Outcome
	Cause, Culprit, Warned                      string
	Armed, Spawning, Server, Patches, Ready     bool
	Fatal, Gone, Unwell, Drain, Healthy, SGLang bool
	Ending, Asked, Signalled, Exited, Unasked   bool
	TreeGone, Drained, Held, Patchless, Spoilt  bool
	Person, Proven, Failed, Over, Certain       bool
	Announced, Corrupt, Doubted                 bool
	Doubtful                                    int
}

func situationOf(m *Machine, g guard) situation {
	r := &m.run
	return situation{
		guard: g, State: m.state, Attempt: m.attempt, Asks: m.asks, Suspects: len(m.suspects), Out: len(m.bisect.Out),
		Among: len(m.bisect.Among), Over: m.bisect.Over, Steps: len(m.steps),
		Spawns: len(m.budget.Spawns), Same: m.budget.Same, NoProgress: m.budget.NoProgress, Waits: m.budget.Waits,
		Phase: r.Phase, Outcome: r.Outcome, Cause: r.Cause, Culprit: r.Culprit, Warned: fmt.Sprint(slices.Sorted(maps.Keys(r.Warned))),
		Armed: !m.deadline.IsZero(), Spawning: r.spawning(), Server: r.Server != nil, Patches: len(r.Patches) > 0, Ready: r.ready(),
		Fatal: r.Fatal != nil, Gone: r.Gone != nil, Unwell: !r.Unwell.IsZero(), Drain: !r.Drain.IsZero(), Healthy: r.Healthy, SGLang: r.SGLang,
		Ending: r.Ending, Asked: r.Asked, Signalled: r.Signalled, Exited: r.Exited != nil, Unasked: r.Unasked,
		TreeGone: r.TreeGone, Drained: r.Drained, Held: r.Held != "", Patchless: r.Patchless != "", Spoilt: r.Spoilt,
		Announced: r.announced(), Corrupt: r.Corrupt, Doubted: m.doubted, Doubtful: len(m.doubtful),
		Person: r.Person, Proven: r.Proven, Failed: r.Diagnosis.Failed, Certain: r.Diagnosis.Confidence == "high",
	}
}

// clone copies a machine; what points to facts is shared, facts do not change.
func clone(m *Machine) *Machine {
	c := *m
	c.doubtful = slices.Clone(m.doubtful)
	c.suspects, c.spent, c.steps = slices.Clone(m.suspects), slices.Clone(m.spent), slices.Clone(m.steps)
	c.budget.Spawns = slices.Clone(m.budget.Spawns)
	c.run.Warned, c.run.Told = maps.Clone(m.run.Warned), maps.Clone(m.run.Told)
	c.run.Odd = slices.Clone(m.run.Odd)
	return &c
}

// walkEvents are the facts of the walk; each is possible in many forms, these
// are the ones that the machine tells apart.
var walkEvents = func() []Body {
	see := func(k phases.Kind, p phases.Phase) Body {
		return Seen{phases.Observation{Kind: k, Phase: p, RankPhase: p, Rank: "TP0", Rule: string(k), Certain: true, Cause: "nccl_error"}}
	}
	found := Diagnosis{SGLang: true, Failed: true, Cause: "oom_graph_capture", Confidence: "high"}
	full := Diagnosis{SGLang: true, Failed: true, Cause: "oom_weights"}
	others := []Neighbour{{Total: 100 << 30, Before: 50 << 30, Text: "process 9"}}
	return []Body{
		Begin{}, Resumed{}, Preflighted{}, Preflighted{Refused: "port", Cause: "port_in_use"}, Preflighted{Refused: "path", Cause: "model_path_missing"},
		Patched{Active: []ActivePatch{{Name: "p", Files: []string{"/x/sglang/a.py"}, Proof: "graph_capture", OnUnproven: "relaunch"}}},
		Patched{}, PatchRefused{Reason: "drifted"}, Reverted{}, RevertFailed{Reason: "EROFS"},
		Spawned{Proc: wire.Proc{PID: 9}}, SpawnFailed{Reason: "no such file"}, SpawnFailed{Reason: "EAGAIN", Passing: true},
		see(phases.KindPhase, phases.GraphCapture), see(phases.KindReady, phases.Ready), see(phases.KindServing, phases.Serving),
		see(phases.KindFault, phases.Starting), see(phases.KindNote, phases.Starting), see(phases.KindDrain, phases.Starting),
		Proven{Patch: "p", Effect: "ineffective", Enforce: true},
		Answered{Endpoint: "/health", Status: 200, Ready: true}, Answered{Endpoint: "/health", Bad: "503"},
		Checked{Answers: 75}, Checked{Answers: 75, Corrupt: "one token repeated"}, Checked{Silent: true}, Working{},
		RankGone{Rank: "TP3"}, Hardware{Lost: true, Text: "lost"}, Hardware{Text: "Xid 13"}, SourceLost{Source: "NVML"},
		Exited{Status: wire.Status{Signal: 9}}, Hearing{}, Drained{Diagnosis: Diagnosis{SGLang: true, Drain: true}}, Drained{Diagnosis: found},
		TreeGone{}, TreeLeft{}, Evidence{}, Evidence{Diagnosis: found}, Evidence{Diagnosis: full, Neighbours: others}, Released{}, NotReleased{Holder: "ghost"},
		NotReleased{Holder: "pid 9", Foreign: true}, StopAsked{By: "SIGTERM"}, RestartAsked{By: "x"}, Reload{By: "x", Options: DefaultOptions()}, Tick{},
	}
}()

// TestWalk goes every way of up to four events (six with SGLAUNCH_LONG=1) from every state.
func TestWalk(t *testing.T) {
	for _, act := range []string{"start", "all", "observe"} {
		for _, state := range allStates {
			t.Run(act+"/"+string(state), func(t *testing.T) {
				t.Parallel()
				a := standingIn(t, state)
				a.opt.Act, a.opt.Attempts, a.opt.Argv = act, 2, []string{"x"}
				a.opt.Rungs = []Rung{{Name: "r", Causes: []string{"oom_graph_capture"}, Set: map[string]string{"--bs": "1"}}}
				depth := 4
				if long {
					depth = 6
				}
				situations, steps := walk(t, a, depth)
				t.Logf("%d situations, %d steps", situations, steps)
			})
		}
	}
}

// long asks for the full numbers of the tests that CI samples.
var long = os.Getenv("SGLAUNCH_LONG") == "1"

type place struct {
	m     *Machine
	g     guard
	path  *trail
	depth int
}

// trail is how the walk came to a place.
type trail struct {
	before *trail
	body   Body
}

func (p *trail) String() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%v\n\t%T%+v", p.before, p.body, p.body)
}

func walk(t *testing.T, a *actor, depth int) (situations, steps int) {
	start := place{m: &Machine{opt: a.opt, state: StateIdle}}
	for _, e := range a.log {
		was := start.m.state
		start.g.before(e.Body)
		if wrong := start.g.after(start.m, e, was, start.m.Step(e)); wrong != "" {
			t.Fatalf("%s\non the way to %s", wrong, a.m.State())
		}
	}
	start.m.Step(Event{At: a.now, Body: SourceLost{}}) // the clock runs, even where nothing has happened
	seen, queue := map[situation]bool{}, []place{start}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for _, b := range walkEvents {
			next, ok := p.step(t, b)
			if !ok {
				continue
			}
			steps++
			if s := situationOf(next.m, next.g); !seen[s] {
				seen[s] = true
				if next.depth < depth {
					queue = append(queue, next)
				}
			}
		}
	}
	return len(seen), steps
}

// step takes one event in one situation.
func (p place) step(t *testing.T, b Body) (place, bool) {
	if !p.g.allows(p.m, b) {
		return place{}, false
	}
	next := place{m: clone(p.m), g: p.g, path: &trail{p.path, b}, depth: p.depth + 1}
	e := Event{At: p.m.wall.Add(time.Second), Body: b, Roll: 0.5}
	switch b := b.(type) {
	case Tick:
		e.At, _ = p.m.Deadline()
	case Resumed:
		next.g, e.Body = p.resumed(b)
	}
	was := p.m.state
	next.g.before(e.Body)
	effects := next.m.Step(e)
	if wrong := next.g.after(next.m, e, was, effects); wrong != "" {
		t.Fatalf("%s\nafter:%v\nin %s", wrong, next.path, was)
	}
	return next, true
}

// resumed is the shim's true word about the attempt.
func (p place) resumed(b Resumed) (guard, Resumed) {
	g := p.g
	b.Attempt = max(p.m.attempt-1, 0)
	if g.Born || p.m.run.Server != nil {
		b.Attempt, b.Server = p.m.attempt, &wire.Proc{PID: 9}
		b.TreeGone = g.Alive == 0
	}
	if g.Exited || b.TreeGone {
		b.Exited = &wire.Status{Signal: 9}
	}
	return g, b
}
