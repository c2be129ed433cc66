package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fieldsOf are the fields of the newest report of that event.
func (a *actor) fieldsOf(event string) map[string]any {
	var fields map[string]any
	for _, e := range a.effects {
		if r, ok := e.Body.(Report); ok && r.Event == event {
			fields = r.Fields
		}
	}
	return fields
}

// perform plays the actions of a script, some time after each other.
func (a *actor) perform(every time.Duration, actions ...string) {
	a.t.Helper()
	for _, action := range actions {
		a.now = a.now.Add(every)
		words, err := splitWords(action)
		must(a.t, err)
		must(a.t, a.act(words[0].text, words[1:]))
	}
}

// TestMachineTellsOfEachPhase: how long it took, and how long nothing moved.
func TestMachineTellsOfEachPhase(t *testing.T) {
	a := newActor(t)
	took := func(event, seconds string) [2]float64 {
		f := a.fieldsOf(event)
		s, _ := f[seconds].(float64)
		q, _ := f["quiet"].(float64)
		return [2]float64{s, q}
	}
	expect := func(what string, got, want [2]float64) {
		t.Helper()
		if got != want {
			t.Errorf("%s took and was quiet for %v s, want %v", what, got, want)
		}
	}
	a.perform(0, "go starting")
	a.perform(20*time.Second, "phase loading_weights")
	expect("starting", took("phase", "seconds"), [2]float64{20, 20})
	a.perform(time.Minute, "progress done=1 total=3")
	a.perform(2*time.Minute, "progress done=2 total=3")
	a.perform(30*time.Second, "phase kv_cache")
	expect("loading_weights", took("phase", "seconds"), [2]float64{210, 120})
	a.perform(10*time.Second, "phase graph_capture")
	expect("kv_cache", took("phase", "seconds"), [2]float64{10, 10})
	a.perform(40*time.Second, "ready")
	expect("graph_capture", took("server_ready", "phase_seconds"), [2]float64{40, 40})
	if f := a.fieldsOf("server_ready"); f["before"] != "graph_capture" || f["seconds"] != 280.0 {
		t.Errorf("ready is told with %v", f)
	}
	a.perform(5*time.Second, "working", "stop", "end")
	expect("serving", took("attempt_ended", "phase_seconds"), [2]float64{10, 10})
}

// A phase that begins without any movement is quiet from its beginning on, not
// from the last movement of the phase before.
func TestMachineQuietBeginsWithThePhase(t *testing.T) {
	a := newActor(t)
	a.perform(0, "go warmup")
	a.perform(30*time.Second, "ready", "stop", "end")
	if f := a.fieldsOf("attempt_ended"); f["quiet"] != 60.0 || f["phase_seconds"] != 60.0 {
		t.Errorf("it took %v s and was quiet for %v s", f["phase_seconds"], f["quiet"])
	}
}

func TestMachineTellsProgressAsAPersonWould(t *testing.T) {
	a := newActor(t)
	a.perform(0, "go loading_weights")
	a.perform(time.Second, "progress done=41 total=83")
	if told := a.told(); !strings.Contains(told, "progress weights 41 of 83") {
		t.Errorf("says %q", told)
	}
}

// TestMachineTellsChanges: an attempt that runs otherwise than asked says so
// when it begins and when it is ready, by the names of the rungs.
func TestMachineTellsChanges(t *testing.T) {
	a := newActor(t)
	a.patches = []ActivePatch{{Name: "mine", Files: []string{"/site/mine.py"}, Proof: "autotune"}}
	rungs, err := ReadyRungs([]string{"graph-capture-oom"})
	must(t, err)
	a.opt.Rungs, a.opt.Argv = rungs, strings.Fields("python -m sglang.launch_server --mem-fraction-static 0.9")
	a.perform(0, "go autotune")
	if f := a.fieldsOf("attempt_started"); f != nil {
		t.Errorf("an attempt as asked begins with %v", f)
	}
	a.perform(time.Second, "crash jit_compile_failed high", "go graph_capture", "crash oom_graph_capture high", "go starting")
	want := []Change{
		{"revert-patch", "without patch mine"},
		{"graph-capture-oom", "with graph-capture-oom (--mem-fraction-static 0.9 -> 0.837)"},
	}
	if diff := cmp.Diff(want, a.fieldsOf("attempt_started")["changes"]); diff != "" {
		t.Errorf("when it begins (-want +got):\n%s", diff)
	}
	a.perform(time.Second, "proven mine ineffective", "ready")
	if diff := cmp.Diff(want, a.fieldsOf("degraded")["changes"]); diff != "" {
		t.Errorf("when it is ready (-want +got):\n%s", diff)
	}
}

func TestMachineNamesSpinners(t *testing.T) {
	on := func(util, memutil int) GPUActivity { return GPUActivity{Util: util, MemUtil: memutil} }
	number := func(gpus ...GPUActivity) []GPUActivity {
		for i := range gpus {
			gpus[i].Index = i
		}
		return gpus
	}
	for want, gpus := range map[string][]GPUActivity{
		"":                                      number(on(0, 0), on(100, 20), on(50, 0), on(-1, -1)),
		"GPU 0 at 100 % with no memory traffic": number(on(100, 0)),
		"GPU 1 at 99 % with no memory traffic":  number(on(100, 5), on(99, 0)),
		"all 2 GPUs at 100 % with no memory traffic":      number(on(100, 0), on(100, 0)),
		"GPU 0, 2 at 98 to 100 % with no memory traffic":  number(on(100, 0), on(0, 0), on(98, 0)),
		"all 3 GPUs at 51 to 99 % with no memory traffic": number(on(51, 0), on(99, 0), on(60, 0)),
	} {
		if got := strings.Join(spinners(gpus), "|"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
