package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// actor plays everybody around the machine in a script: it sends what a line
// says, and answers for the shim and the performer where a line says "go".
type actor struct {
	t       *testing.T
	opt     Options
	m       *Machine
	now     time.Time
	patches []ActivePatch
	diag    Diagnosis // what the output says in all
	others  []Neighbour
	effects []Effect // since the line began
	ask     Act      // the newest effect that waits for an answer
	server  int      // pid of the newest server
	log     []Event  // all that was sent
}

var dawn = time.Date(2026, 2, 19, 3, 0, 0, 0, time.UTC)

func newActor(t *testing.T) *actor {
	a := &actor{t: t, opt: DefaultOptions(), now: dawn}
	a.opt.SGLang = true
	a.opt.Backoff.Jitter = 0
	return a
}

// machine makes the machine when the first fact is told: options come before.
func (a *actor) machine() *Machine {
	if a.m == nil {
		m, err := New(a.opt)
		if err != nil {
			a.t.Fatal(err)
		}
		a.m = m
	}
	return a.m
}

// send gives the machine one fact.
func (a *actor) send(b Body) {
	a.machine()
	attempt := a.m.Attempt()
	switch b.(type) {
	case Begin, Resumed, StopAsked, RestartAsked, Tick, Hardware, SourceLost:
		attempt = 0
	}
	e := Event{Seq: uint64(len(a.log) + 1), At: a.now, Attempt: attempt, Roll: 0.5, Body: b}
	a.log = append(a.log, e)
	effects := a.m.Step(e)
	a.effects = append(a.effects, effects...)
	for _, e := range effects {
		if _, report := e.Body.(Report); !report {
			a.ask = e.Body
		}
	}
	if at, armed := a.m.Deadline(); armed && !at.After(a.now) {
		if _, tick := b.(Tick); tick {
			a.t.Errorf("after a tick at %s the deadline is %s", a.now, at)
		}
	}
}

// answer says what an honest performer says to the newest question.
func (a *actor) answer() error {
	switch b := a.ask.(type) {
	case Preflight:
		a.send(Preflighted{})
	case ApplyPatch:
		active := slices.DeleteFunc(slices.Clone(a.patches), func(p ActivePatch) bool { return slices.Contains(b.Without, p.Name) })
		a.send(Patched{Active: active})
	case Spawn:
		a.server++
		a.diag, a.others = Diagnosis{}, nil
		a.send(Spawned{Proc: wire.Proc{PID: 100 + a.server, Start: 1}})
	case GatherEvidence:
		a.send(Evidence{Dir: "evidence", Diagnosis: a.diag, Neighbours: a.others})
	case SignalServer:
		a.send(Exited{Status: wire.Status{Signal: 9}})
	case KillTree:
		a.send(TreeGone{})
		a.send(Drained{Diagnosis: a.diag})
	case AwaitRelease:
		a.send(Released{})
	case RevertPatch:
		a.send(Reverted{})
	case CheckOutput:
		a.send(soundAnswers(b.CheckSize))
	default:
		return fmt.Errorf("nothing is waited for in %s", a.m.State())
	}
	return nil
}

// soundAnswers is what a check of a good server finds.
func soundAnswers(s CheckSize) Checked {
	return Checked{Answers: s.Generations, Tokens: s.Generations * s.Tokens / 2, Asked: s.Tokens, Sees: 0.039, Confidence: 0.95}
}

// tick lets the time pass until the machine's deadline.
func (a *actor) tick() error {
	at, armed := a.m.Deadline()
	if !armed {
		return fmt.Errorf("no deadline in %s", a.m.State())
	}
	if at.After(a.now) {
		a.now = at
	}
	a.send(Tick{})
	return nil
}

// reach answers honestly until the launch stands where the script wants it:
// in a state, or in a phase of the start.
func (a *actor) reach(goal string) error {
	if a.m == nil {
		a.send(Begin{})
	}
	phase, phaseErr := phases.ParsePhase(goal)
	for range 100 {
		state := a.m.State()
		switch {
		case string(state) == goal && (state != StateStarting || !a.m.run.spawning()):
			return nil
		case state == StateStarting && !a.m.run.spawning() && phaseErr == nil:
			a.see(phases.Observation{Kind: phases.KindPhase, Rule: "phase", Rank: "TP0", Phase: phase, RankPhase: phase})
			return nil
		case state == StateStarting && !a.m.run.spawning() && (goal == "up" || goal == "checking"):
			a.see(phases.Observation{Kind: phases.KindReady, Rule: "ready", Rank: "main", Phase: phases.Ready, RankPhase: phases.Ready})
		case state == StateUp || state == StateEnded || state == StateStarting && !a.m.run.spawning():
			return fmt.Errorf("%s is not reached from %s", goal, state)
		case state == StateBackoff:
			if err := a.tick(); err != nil {
				return err
			}
		default:
			if err := a.answer(); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%s is never reached", goal)
}

func (a *actor) see(o phases.Observation) { a.send(Seen{o}) }

// end answers honestly until the attempt's story is over.
func (a *actor) end() error {
	for range 20 {
		if s := a.m.State(); s == StateBackoff || s == StateEnded {
			return nil
		}
		if err := a.answer(); err != nil {
			return err
		}
	}
	return fmt.Errorf("the attempt does not end: %s", a.m.State())
}

// told is everything that was told to a person, the records or the shim.
func (a *actor) told() string {
	var b strings.Builder
	for _, e := range a.effects {
		switch r := e.Body.(type) {
		case Report:
			fmt.Fprintln(&b, r.Event, r.Text, r.Fields["reason"])
		case Finish:
			fmt.Fprintln(&b, r.Reason)
		}
	}
	return b.String()
}

func (a *actor) show() string {
	var b strings.Builder
	for _, e := range a.effects {
		data, _ := json.Marshal(e)
		fmt.Fprintf(&b, "\t%s\n", data)
	}
	return b.String()
}

// args are the words of an action: texts, and values by name.
type args struct {
	text  string // the first quoted word
	plain []string
	named map[string]string
}

func parseArgs(words []word) args {
	a := args{named: map[string]string{}}
	for _, w := range words {
		key, value, ok := strings.Cut(w.text, "=")
		switch {
		case w.quoted && a.text == "":
			a.text = w.text
		case ok && !strings.HasPrefix(key, "--"):
			a.named[key] = value
		default:
			a.plain = append(a.plain, w.text)
		}
	}
	return a
}

func (a args) has(word string) bool { return slices.Contains(a.plain, word) }

func (a args) at(i int) string {
	if i < len(a.plain) {
		return a.plain[i]
	}
	return ""
}

func (a args) number(name string, otherwise float64) float64 {
	if v, err := strconv.ParseFloat(a.named[name], 64); err == nil {
		return v
	}
	return otherwise
}

func (a args) list(name string) []string {
	if a.named[name] == "" {
		return nil
	}
	return strings.Split(a.named[name], ",")
}

// diagnosis reads CAUSE [high|medium|low] ["text"] rank= frames= sglang.
func (a args) diagnosis() Diagnosis {
	d := Diagnosis{SGLang: true, Failed: true, Text: a.text, Rank: a.named["rank"], Frames: a.list("frames"), Confidence: "low"}
	for _, w := range a.plain {
		switch w {
		case "high", "medium", "low":
			d.Confidence = w
		case "foreign":
			d.SGLang = false
		case "drain":
			d.Drain, d.Failed = true, false
		default:
			d.Cause = w
		}
	}
	if v := a.named["setting"]; v != "" {
		flag, value, _ := strings.Cut(v, ":")
		d.Settings = map[string]string{flag: value}
	}
	return d
}
