package machine

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/metrics"
	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// TestTransitionTable prints what every event does in every state, from the
// code, into testdata/transitions.txt. Read a difference before you accept it
// with -rewrite: it is the shortest description of what a change changes.
func TestTransitionTable(t *testing.T) {
	var table bytes.Buffer
	fmt.Fprintln(&table, "# What an event does in a state, printed from the code. Pairs that do nothing are left out.")
	seen := map[string]bool{}
	for _, state := range allStates {
		fmt.Fprintf(&table, "\n%s\n", state)
		for _, e := range sampleEvents {
			kind, _, err := bodies.encode(e.body)
			if err != nil {
				t.Fatal(err)
			}
			seen[kind] = true
			a := standingIn(t, state)
			a.effects = nil
			if _, tick := e.body.(Tick); tick {
				if a.tick() != nil {
					continue
				}
			} else {
				a.send(e.body)
			}
			if after := a.m.State(); after != state || len(a.effects) > 0 {
				fmt.Fprintf(&table, "  %-22s -> %-10s %s\n", e.name, after, effectNames(a.effects))
			}
		}
	}
	for kind := range bodies {
		if !seen[kind] {
			t.Errorf("the table has no example of %q", kind)
		}
	}
	golden(t, "testdata/transitions.txt", table.Bytes())
}

var allStates = []State{
	StateIdle, StatePreflight, StatePatching, StateStarting, StateChecking, StateUp, StateEvidence,
	StateStopping, StateKilling, StateReleasing, StateReverting, StateBackoff, StateEnded,
}

// The metrics know every state, and no other.
func TestMetricsKnowTheStates(t *testing.T) {
	for _, s := range allStates {
		if !slices.Contains(metrics.States, string(s)) {
			t.Errorf("no metric tells of %s", s)
		}
	}
	if len(metrics.States) != len(allStates) {
		t.Errorf("%d states in metrics, %d in the machine", len(metrics.States), len(allStates))
	}
}

// standingIn brings a launch into a state, by a crash where it is one of the end.
func standingIn(t *testing.T, state State) *actor {
	a := newActor(t)
	a.patches = []ActivePatch{{Name: "p", Files: []string{"/x/sglang/a.py"}, OnUnproven: "relaunch"}}
	a.diag = Diagnosis{SGLang: true, Failed: true, Cause: "segfault"}
	goal := string(state)
	switch state {
	case StateIdle:
		a.machine()
		return a
	case StateEvidence, StateStopping, StateKilling, StateReleasing, StateReverting, StateBackoff:
		must(t, a.reach("loading_weights"))
		must(t, a.tick()) // hung
	case StateEnded:
		must(t, a.reach("up"))
		a.send(StopAsked{By: "SIGTERM"})
	}
	must(t, a.reach(goal))
	return a
}

var sampleEvents = []struct {
	name string
	body Body
}{
	{"begin", Begin{}},
	{"preflighted", Preflighted{}},
	{"preflighted, refused", Preflighted{Refused: "the port is taken", Cause: "port_in_use"}},
	{"patched", Patched{}},
	{"patch_refused", PatchRefused{Reason: "drifted"}},
	{"spawned", Spawned{Proc: wire.Proc{PID: 9}}},
	{"spawn_failed", SpawnFailed{Reason: "no such file"}},
	{"seen, phase", Seen{phases.Observation{Kind: phases.KindPhase, Phase: phases.GraphCapture, Rule: "graph-begin"}}},
	{"seen, ready", Seen{phases.Observation{Kind: phases.KindReady, Phase: phases.Ready, Rule: "ready"}}},
	{"seen, fatal", Seen{phases.Observation{Kind: phases.KindFault, Certain: true, Cause: "nccl_error", Rule: "nccl-error"}}},
	{"seen, drain", Seen{phases.Observation{Kind: phases.KindDrain, Rule: "drain"}}},
	{"proven, ineffective", Proven{Patch: "p", Effect: "ineffective", Enforce: true}},
	{"answered, good", Answered{Endpoint: "/health", Status: 200, Ready: true}},
	{"answered, bad", Answered{Endpoint: "/health", Status: 503, Bad: "503"}},
	{"checked", Checked{Answers: 75}},
	{"checked, corrupt", Checked{Answers: 75, Corrupt: "3 of 75 answers are wrong"}},
	{"checked, silent", Checked{Undone: "it took longer than 10m", Silent: true}},
	{"working", Working{}},
	{"activity", Activity{}},
	{"rank_gone", RankGone{Rank: "TP3"}},
	{"hardware, lost", Hardware{GPU: 3, Lost: true, Text: "GPU 3 fell off the bus"}},
	{"source_lost", SourceLost{Source: "NVML", Reason: "no answer"}},
	{"exited", Exited{Status: wire.Status{Signal: 9}}},
	{"hearing", Hearing{Bytes: 1}},
	{"drained", Drained{Diagnosis: Diagnosis{SGLang: true}}},
	{"tree_gone", TreeGone{}},
	{"tree_left", TreeLeft{Procs: []wire.Proc{{PID: 9, Comm: "python", State: "D"}}}},
	{"evidence", Evidence{}},
	{"released", Released{}},
	{"not_released", NotReleased{Holder: "no process"}},
	{"reverted", Reverted{}},
	{"revert_failed", RevertFailed{Reason: "EROFS"}},
	{"stop_asked", StopAsked{By: "SIGTERM"}},
	{"stop_asked, forced", StopAsked{By: "SIGTERM", Force: true}},
	{"restart_asked", RestartAsked{By: "sglaunch restart"}},
	{"reload", Reload{By: "SIGHUP", Options: DefaultOptions(), Text: "reloaded: stop.drain from now on"}},
	{"resumed", Resumed{Restarts: 1, Attempt: 1, Server: &wire.Proc{PID: 9}}},
	{"resumed, exited", Resumed{Restarts: 1, Attempt: 1, Exited: &wire.Status{Signal: 9}, TreeGone: true}},
	{"tick", Tick{}},
}

// effectNames names effects, and of reports what is told.
func effectNames(effects []Effect) string {
	var names []string
	for _, e := range effects {
		name, _, err := acts.encode(e.Body)
		switch b := e.Body.(type) {
		case Report:
			name = "(" + b.Event + ")"
		case Finish:
			name = fmt.Sprintf("finish %d", b.Code)
		}
		if err != nil {
			name = err.Error()
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *rewrite {
		must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
