package machine

import (
	"encoding/json"
	"fmt"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// What strikes a server, a supervisor or a clock in the nights of world_test.go.

// strike is an entry of the agenda: the fault of an episode.
type strike struct {
	e    *episode
	what trouble
}

// disaster is one that sglaunch itself meets.
type disaster string

func (strike) body()   {}
func (disaster) body() {}

// happen makes an entry of the agenda true.
func (w *world) happen(d due) string {
	switch b := d.body.(type) {
	case strike:
		return w.strike(d.attempt, b)
	case disaster:
		return w.disaster(b)
	case Exited:
		if w.hello.Exited != nil {
			return ""
		}
		w.hello.Exited = &b.Status
		w.account(w.now)
	case TreeGone:
		w.hello.TreeGone = true
	case Seen:
		if b.Kind == phases.KindReady {
			w.readyAt = w.now
		}
	}
	return w.tell(d.attempt, d.body)
}

// account counts the service of a server up to a moment.
func (w *world) account(until time.Duration) {
	if w.readyAt == 0 {
		return
	}
	if w.brokeAt != 0 {
		until = min(until, w.brokeAt)
	}
	w.served += max(min(until, night)-w.readyAt, 0)
	w.readyAt = 0
}

// strike is the fault of an episode; the next attempt that is cured of it
// plays the next episode.
func (w *world) strike(attempt int, s strike) string {
	w.brokeAt = w.now
	switch s.what {
	case "patch_crash", "needs_change", "hang_lock", "peer_or_box", "permanent", "hardware":
		if !w.struck {
			w.struck, w.back = true, w.now+s.e.outage
		}
	default: // a relaunch helps
		w.current++
	}
	switch s.what {
	case "hang_transient", "hang_lock":
		return w.hang(attempt, s.e)
	case "zombie":
		return w.tell(attempt, RankGone{Rank: "TP3", Proc: wire.Proc{PID: 7}, Status: &wire.Status{Signal: 9}})
	case "hang":
		return w.tell(attempt, Answered{Endpoint: "/health", Bad: "no answer"})
	case "hardware", "gpu_lost":
		return w.tell(0, Hardware{GPU: 3, Lost: true, Text: "GPU 3 fell off the bus"})
	case "crash":
		return w.die(attempt, Diagnosis{SGLang: true, Failed: true, Cause: "segfault", Confidence: "medium", Text: "Fatal Python error"})
	}
	d := Diagnosis{SGLang: true, Failed: true, Cause: s.e.cause, Confidence: s.e.sure, Text: s.e.cause, Rank: "TP3"}
	if s.e.frames {
		d.Frames = nightPatch.Files
	}
	return w.die(attempt, d)
}

func (w *world) die(attempt int, d Diagnosis) string {
	w.words = d
	return w.happen(due{attempt: attempt, body: Exited{Status: wire.Status{Code: 1}}})
}

// hang: the sources go on to speak, and show that nothing moves.
func (w *world) hang(attempt int, e *episode) string {
	w.words.Cause, w.words.Confidence = e.cause, e.sure
	still := Activity{CPU: 1, GPUs: []GPUActivity{{Used: 1 << 30}}}
	if e.spins {
		still.GPUs[0].Util = 100
	}
	for in := readingEvery; in < 3*time.Hour; in += readingEvery {
		w.plan(due{at: w.now + in, life: w.life, attempt: attempt, body: still})
	}
	return ""
}

// kill ends what is left of the server, and of its output.
func (w *world) kill(attempt int) {
	w.account(w.now)
	if w.hello.Attempt != attempt {
		return
	}
	w.life++ // whatever it had to say, it says no more
	w.later(oracleKill-5*time.Second, attempt, TreeGone{})
	if w.chaos && w.r.IntN(50) == 0 {
		return // the output's end is never told
	}
	w.later(oracleKill-5*time.Second+time.Duration(w.r.IntN(3))*time.Second, attempt, Drained{Diagnosis: w.words})
}

// disturb draws what a night of chaos brings.
func (w *world) disturb() {
	for range w.r.IntN(12) {
		what := []disaster{"supervisor", "supervisor", "snapshot", "forward", "back", "sleep", "nvml", "noise", "stop", "restart"}[w.r.IntN(10)]
		if what == "stop" && w.r.IntN(3) != 0 {
			continue
		}
		w.later(time.Duration(w.r.Int64N(int64(night))), 0, what)
	}
}

func (w *world) disaster(d disaster) string {
	switch d {
	case "supervisor", "snapshot":
		if err := w.supervisorDies(d == "snapshot"); err != nil {
			return err.Error()
		}
		hello := w.hello
		hello.Restarts++
		return w.tell(0, hello)
	case "forward":
		w.skew += time.Duration(w.r.Int64N(int64(5 * time.Hour)))
	case "back":
		w.skew -= time.Duration(w.r.Int64N(int64(5 * time.Hour)))
	case "sleep": // everything stands still, and everybody finds it later
		for i := range w.queue {
			w.queue[i].at += time.Hour
		}
		w.now += time.Hour
		if w.readyAt != 0 {
			w.readyAt += time.Hour
		}
	case "nvml":
		return w.tell(0, SourceLost{Source: "NVML", Reason: "Xid 119"})
	case "noise":
		return w.tell(w.m.Attempt(), Seen{phases.Observation{Kind: phases.KindFault, Rule: "oom", Text: "Decode out of memory happened",
			Phase: w.m.Phase(), RankPhase: w.m.Phase()}})
	case "restart":
		return w.tell(0, RestartAsked{By: "a person"})
	case "stop":
		return w.tell(0, StopAsked{By: "SIGTERM"})
	}
	return ""
}

// supervisorDies replaces the machine by what its journal, or a snapshot, says
// of it. What was being done for it is lost; the shim and the server live on.
func (w *world) supervisorDies(snapshot bool) error {
	kept := w.queue[:0]
	for _, d := range w.queue {
		switch d.body.(type) {
		case Preflighted, Patched, PatchRefused, Evidence, Released, NotReleased, Reverted, RevertFailed:
		default:
			kept = append(kept, d)
		}
	}
	w.queue = kept
	before, err := w.m.Snapshot()
	if err != nil {
		return err
	}
	if snapshot {
		w.m, err = Restore(w.opt, before)
		return err
	}
	if w.m, err = New(w.opt); err != nil {
		return err
	}
	for _, e := range w.log {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		var read Event
		if err := json.Unmarshal(data, &read); err != nil {
			return err
		}
		w.m.Step(read)
	}
	after, err := w.m.Snapshot()
	if err == nil && string(before) != string(after) {
		err = fmt.Errorf("the journal makes another machine:\nwas %s\nis  %s", before, after)
	}
	return err
}
