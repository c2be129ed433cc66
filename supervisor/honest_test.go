package supervisor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// honest is a launch in which everybody around the machine does at once what it
// asks for: what this room makes of the machine's words is looked at, not what
// the machine decides (see the scripts of its own room).
type honest struct {
	t       *testing.T
	opt     Options
	m       *Machine
	now     time.Time
	patches []ActivePatch
	diag    Diagnosis // what the output says in all
	ask     Act       // the newest effect that waits for an answer
	log     []Event   // all that was sent
	effects []Effect  // since the newest action began
}

// send gives the machine one fact.
func (h *honest) send(b Body) {
	if h.m == nil {
		m, err := NewMachine(h.opt)
		must(h.t, err)
		h.m = m
	}
	e := Event{Seq: uint64(len(h.log) + 1), At: h.now, Attempt: h.m.Attempt(), Roll: 0.5, Body: b}
	h.log = append(h.log, e)
	effects := h.m.Step(e)
	h.effects = append(h.effects, effects...)
	for _, e := range effects {
		if _, report := e.Body.(Report); !report {
			h.ask = e.Body
		}
	}
}

// answer does what was asked for last.
func (h *honest) answer() {
	h.t.Helper()
	ask := h.ask
	h.ask = nil
	switch ask.(type) {
	case Preflight:
		h.send(Preflighted{})
	case ApplyPatch:
		h.send(Patched{Active: h.patches})
	case Spawn:
		h.diag = Diagnosis{}
		h.send(Spawned{Proc: wire.Proc{PID: 100 + h.m.Attempt(), Start: 1}})
	case CheckOutput:
		h.send(Checked{Answers: 75, Tokens: 750, Asked: 20})
	case GatherEvidence:
		h.send(Evidence{Dir: "evidence", Diagnosis: h.diag})
	case SignalServer:
		h.send(Exited{Status: wire.Status{Signal: 9}})
	case KillTree:
		h.send(TreeGone{})
		h.send(Drained{Diagnosis: h.diag})
	case AwaitRelease:
		h.send(Released{})
	case RevertPatch:
		h.send(Reverted{})
	default:
		h.t.Fatalf("nothing is waited for in %s", h.m.State())
	}
}

// start lets the next attempt's server be spawned.
func (h *honest) start() {
	h.t.Helper()
	if h.m == nil {
		h.send(Begin{})
	}
	for h.m.State() != StateStarting || h.ask != nil {
		if at, _ := h.m.Deadline(); h.m.State() == StateBackoff {
			h.now = at
			h.send(Tick{})
			continue
		}
		h.answer()
	}
}

// end lets the attempt end.
func (h *honest) end() {
	h.t.Helper()
	for !slices.Contains([]State{StateBackoff, StateEnded}, h.m.State()) {
		h.answer()
	}
}

// act performs an action:
//
//	start | stop | phase PHASE | ready | progress DONE TOTAL | crash CAUSE [CONFIDENCE]
func (h *honest) act(action string) {
	h.t.Helper()
	words := strings.Fields(action)
	o := phases.Observation{Rule: words[0], Rank: "TP0", Line: 7}
	switch words[0] {
	case "start":
		h.start()
		return
	case "stop":
		h.send(StopAsked{By: "SIGTERM"})
		h.end()
		return
	case "crash": // the server ends by itself; what it said explains it
		h.diag = Diagnosis{SGLang: true, Failed: true, Cause: words[1], Confidence: cmp.Or(strings.Join(words[2:], ""), "low")}
		h.send(Exited{Status: wire.Status{Code: 1}})
		h.end()
		return
	case "phase":
		p, err := phases.ParsePhase(words[1])
		must(h.t, err)
		o.Kind, o.Phase = phases.KindPhase, p
	case "ready":
		o.Kind, o.Phase = phases.KindReady, phases.Ready
	case "progress":
		o.Kind, o.Phase, o.Unit = phases.KindProgress, h.m.Phase(), "shards"
		_, err := fmt.Sscan(strings.Join(words[1:], " "), &o.Done, &o.Total)
		must(h.t, err)
	default:
		h.t.Fatalf("there is no action %q", action)
	}
	o.RankPhase = o.Phase
	h.send(Seen{Observation: o})
	for h.m.State() == StateChecking {
		h.answer()
	}
}

// finish is how the launch has ended.
func (h *honest) finish() (last Finish) {
	for _, e := range h.effects {
		if f, ok := e.Body.(Finish); ok {
			last = f
		}
	}
	return last
}
