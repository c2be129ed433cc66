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
	"sglaunch/supervisor/machine"
)

var dawn = time.Date(2026, 2, 19, 3, 0, 0, 0, time.UTC)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// honest is a launch in which everybody around the machine does at once what it
// asks for: what this room makes of the machine's words is looked at, not what
// the machine decides (see the scripts of its own room).
type honest struct {
	t       *testing.T
	opt     machine.Options
	m       *machine.Machine
	now     time.Time
	patches []machine.ActivePatch
	diag    machine.Diagnosis // what the output says in all
	ask     machine.Act       // the newest effect that waits for an answer
	log     []machine.Event   // all that was sent
	effects []machine.Effect  // since the newest action began
}

// send gives the machine one fact.
func (h *honest) send(b machine.Body) {
	if h.m == nil {
		m, err := machine.New(h.opt)
		must(h.t, err)
		h.m = m
	}
	e := machine.Event{Seq: uint64(len(h.log) + 1), At: h.now, Attempt: h.m.Attempt(), Roll: 0.5, Body: b}
	h.log = append(h.log, e)
	effects := h.m.Step(e)
	h.effects = append(h.effects, effects...)
	for _, e := range effects {
		if _, report := e.Body.(machine.Report); !report {
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
	case machine.Preflight:
		h.send(machine.Preflighted{})
	case machine.ApplyPatch:
		h.send(machine.Patched{Active: h.patches})
	case machine.Spawn:
		h.diag = machine.Diagnosis{}
		h.send(machine.Spawned{Proc: wire.Proc{PID: 100 + h.m.Attempt(), Start: 1}})
	case machine.CheckOutput:
		h.send(machine.Checked{Answers: 75, Tokens: 750, Asked: 20})
	case machine.GatherEvidence:
		h.send(machine.Evidence{Dir: "evidence", Diagnosis: h.diag})
	case machine.SignalServer:
		h.send(machine.Exited{Status: wire.Status{Signal: 9}})
	case machine.KillTree:
		h.send(machine.TreeGone{})
		h.send(machine.Drained{Diagnosis: h.diag})
	case machine.AwaitRelease:
		h.send(machine.Released{})
	case machine.RevertPatch:
		h.send(machine.Reverted{})
	default:
		h.t.Fatalf("nothing is waited for in %s", h.m.State())
	}
}

// start lets the next attempt's server be spawned.
func (h *honest) start() {
	h.t.Helper()
	if h.m == nil {
		h.send(machine.Begin{})
	}
	for h.m.State() != machine.StateStarting || h.ask != nil {
		if at, _ := h.m.Deadline(); h.m.State() == machine.StateBackoff {
			h.now = at
			h.send(machine.Tick{})
			continue
		}
		h.answer()
	}
}

// end lets the attempt end.
func (h *honest) end() {
	h.t.Helper()
	for !slices.Contains([]machine.State{machine.StateBackoff, machine.StateEnded}, h.m.State()) {
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
		h.send(machine.StopAsked{By: "SIGTERM"})
		h.end()
		return
	case "crash": // the server ends by itself; what it said explains it
		h.diag = machine.Diagnosis{SGLang: true, Failed: true, Cause: words[1], Confidence: cmp.Or(strings.Join(words[2:], ""), "low")}
		h.send(machine.Exited{Status: wire.Status{Code: 1}})
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
	h.send(machine.Seen{Observation: o})
	for h.m.State() == machine.StateChecking {
		h.answer()
	}
}

// finish is how the launch has ended.
func (h *honest) finish() (last machine.Finish) {
	for _, e := range h.effects {
		if f, ok := e.Body.(machine.Finish); ok {
			last = f
		}
	}
	return last
}
