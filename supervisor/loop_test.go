package supervisor

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
	"sglaunch/supervisor/journal"
	"sglaunch/supervisor/machine"
)

// fakeHands performs effects on paper: each gets the answer that the script
// gives it, and all that was asked for is remembered.
type fakeHands struct {
	mu     sync.Mutex
	loop   *loop
	done   []machine.Act
	answer func(attempt int, a machine.Act) machine.Body // nil = no answer
}

func (h *fakeHands) Perform(e machine.Effect) {
	h.mu.Lock()
	if _, ok := e.Body.(machine.Report); !ok {
		h.done = append(h.done, e.Body)
	}
	h.mu.Unlock()
	if b := h.answer(e.Attempt, e.Body); b != nil {
		go h.loop.Post(e.Attempt, b)
	}
}

func (h *fakeHands) count(match func(machine.Act) bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, a := range h.done {
		if match(a) {
			n++
		}
	}
	return n
}

func isSpawn(a machine.Act) bool { _, ok := a.(machine.Spawn); return ok }

// obedient answers every effect as a healthy box would.
func obedient(attempt int, a machine.Act) machine.Body {
	switch a.(type) {
	case machine.Preflight:
		return machine.Preflighted{}
	case machine.ApplyPatch:
		return machine.Patched{}
	case machine.RevertPatch:
		return machine.Reverted{}
	case machine.Spawn:
		return machine.Spawned{Proc: wire.Proc{PID: 100 + attempt, Start: 1}}
	case machine.SignalServer:
		return machine.Exited{Status: wire.Status{Signal: 9}}
	case machine.KillTree:
		return machine.TreeGone{}
	case machine.GatherEvidence:
		return machine.Evidence{}
	case machine.AwaitRelease:
		return machine.Released{}
	}
	return nil
}

// A server that says nothing is ended when its patience is over, and tried
// again until the budget is used.
func TestLoopEndsSilentLaunches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := machine.DefaultOptions()
		options.SGLang = true
		hands := &fakeHands{}
		hands.answer = func(attempt int, a machine.Act) machine.Body {
			if _, ok := a.(machine.KillTree); ok {
				go hands.loop.Post(attempt, machine.Drained{Diagnosis: machine.Diagnosis{SGLang: true}})
			}
			return obedient(attempt, a)
		}
		hands.loop = newLoop(newMachine(t, options), nil, hands)
		begun := time.Now()
		code := hands.loop.Run(machine.Begin{})
		if code != machine.CodeLater {
			t.Errorf("exit code %d, want %d", code, machine.CodeLater)
		}
		if n := hands.count(isSpawn); n != 3 {
			t.Errorf("%d spawns, want 3: the same cause three times in a row", n)
		}
		if took := time.Since(begun); took < 15*time.Minute || took > 17*time.Minute {
			t.Errorf("took %s: three times five minutes of patience were expected", took)
		}
	})
}

// Progress of any kind keeps a launch alive; an asked stop ends it with 0.
func TestLoopKeepsMovingLaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := machine.DefaultOptions()
		options.SGLang = true
		hands := &fakeHands{}
		hands.answer = func(attempt int, a machine.Act) machine.Body {
			if _, ok := a.(machine.KillTree); ok {
				go hands.loop.Post(attempt, machine.Drained{Diagnosis: machine.Diagnosis{SGLang: true}})
			}
			return obedient(attempt, a)
		}
		hands.loop = newLoop(newMachine(t, options), nil, hands)
		go func() {
			time.Sleep(time.Second)
			for i := range 40 {
				hands.loop.Post(1, machine.Seen{Observation: phases.Observation{Kind: phases.KindProgress, Phase: phases.LoadingWeights,
					RankPhase: phases.LoadingWeights, Done: int64(i), Total: 40, Unit: "shards"}})
				time.Sleep(4 * time.Minute)
			}
			hands.loop.Post(0, machine.StopAsked{By: "test"})
		}()
		if code := hands.loop.Run(machine.Begin{}); code != machine.CodeStopped {
			t.Errorf("exit code %d, want 0", code)
		}
		if n := hands.count(isSpawn); n != 1 {
			t.Errorf("%d spawns, want 1", n)
		}
	})
}

// A ping is answered by the loop: not while it hangs, and when it has ended at once,
// since what follows the end has limits of its own.
func TestLoopAnswersPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := 0
		answer := func() { answers++ }
		goesOn := make(chan struct{})
		hands := &fakeHands{answer: func(int, machine.Act) machine.Body { <-goesOn; return nil }}
		loop := newLoop(newMachine(t, machine.DefaultOptions()), nil, hands)
		go loop.Run(machine.Begin{})
		for range 3 {
			synctest.Wait()
			loop.Ping(answer)
		}
		if answers != 0 {
			t.Errorf("a loop that hangs has answered %d pings", answers)
		}
		close(goesOn)
		synctest.Wait()
		if answers != 1 {
			t.Errorf("a loop that goes on has answered %d times, want once for all pings that waited", answers)
		}
		loop.Leave()
		synctest.Wait()
		loop.Ping(answer)
		if answers != 2 {
			t.Error("a loop that has ended leaves a ping without an answer")
		}
	})
}

// The loop rotates by itself, and a file never grows beyond its bound.
func TestLoopRotatesTheJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := journal.Create(path, journal.Header{Launch: "x", Time: dawn, Options: machine.DefaultOptions()})
	if err != nil {
		t.Fatal(err)
	}
	hands := &fakeHands{answer: func(int, machine.Act) machine.Body { return nil }}
	loop := newLoop(newMachine(t, machine.DefaultOptions()), j, hands)
	hands.loop = loop
	loop.rotateAfter = 10
	for range 25 {
		loop.step(news{0, machine.SourceLost{Source: "x", Reason: "y"}, dawn})
	}
	if err := j.Close(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if entries := entriesIn(t, path); len(entries) != 5 {
		t.Errorf("%d entries in the newest file, want 5", len(entries))
	}
	if entries := entriesIn(t, path+".1"); len(entries) != 10 {
		t.Errorf("%d entries in the file before, want 10", len(entries))
	}
}

func entriesIn(t *testing.T, path string) []journal.Entry {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	_, entries, torn, err := journal.Read(f)
	must(t, err)
	if torn > 0 {
		t.Fatalf("%s: %d lines are torn", path, torn)
	}
	return entries
}

func newMachine(t *testing.T, o machine.Options) *machine.Machine {
	t.Helper()
	m, err := machine.New(o)
	must(t, err)
	return m
}
