package machine

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sglaunch/phases"
)

func TestMachineRefusesImpossibleOptions(t *testing.T) {
	for name, spoil := range map[string]func(*Options){
		`cannot act as "always"`:          func(o *Options) { o.Act = "always" },
		`cannot relaunch by policy "yes"`: func(o *Options) { o.Policy = "yes" },
		"cannot launch 0 times":           func(o *Options) { o.Attempts = 0 },
		"cannot back off by factor 0.5":   func(o *Options) { o.Backoff.Factor = 0.5 },
		"cannot wait for 30m0s while nothing moves in starting: its timeout is 20m0s": func(o *Options) {
			o.Limits = map[phases.Phase]Limit{phases.Starting: {Quiet: 30 * time.Minute, Timeout: 20 * time.Minute}}
		},
		"cannot jitter by 2":                  func(o *Options) { o.Backoff.Jitter = 2 },
		"cannot wait for -1s":                 func(o *Options) { o.Stop.Grace = -time.Second },
		`"mine": there is no cause "oom"`:     func(o *Options) { o.Rungs = []Rung{{Name: "mine", Causes: []string{"oom"}}} },
		`"mine": it changes nothing`:          func(o *Options) { o.Rungs = []Rung{{Name: "mine"}} },
		`"mine": "bs" is no flag`:             func(o *Options) { o.Rungs = []Rung{{Name: "mine", Set: map[string]string{"bs": "1"}}} },
		`--bs: "x0.5.5" does not scale`:       func(o *Options) { o.Rungs = []Rung{{Name: "mine", Set: map[string]string{"--bs": "x0.5.5"}}} },
		`--bs: "x0" does not scale`:           func(o *Options) { o.Rungs = []Rung{{Name: "mine", Set: map[string]string{"--bs": "x0"}}} },
		`"mine": max 1 is below min 2`:        func(o *Options) { o.Rungs = []Rung{{Name: "mine", Env: map[string]string{"A": "1"}, Min: 2, Max: 1}} },
		"cannot wait for -1ns: a duration is": func(o *Options) { o.Unwell = -1 },
	} {
		opt := DefaultOptions()
		spoil(&opt)
		if _, err := New(opt); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("New says %v, want %q", err, name)
		}
		if _, err := Restore(opt, []byte("{}")); err == nil {
			t.Errorf("Restore takes options that New refuses: %s", name)
		}
	}
	if _, err := Restore(DefaultOptions(), []byte("[")); err == nil {
		t.Error("Restore takes half a snapshot")
	}
}

// TestMachineSnapshotIsComplete fails where a field was added to the machine
// and forgotten in the snapshot.
func TestMachineSnapshotIsComplete(t *testing.T) {
	kept := reflect.TypeFor[snapshot]().NumField()
	all := reflect.TypeFor[Machine]().NumField()
	const ofTheStep = 3 // opt, out, roll
	if kept != all-ofTheStep {
		t.Errorf("the machine has %d fields to keep, the snapshot %d", all-ofTheStep, kept)
	}
	for _, s := range allStates {
		m := standingIn(t, s).m
		data, err := m.Snapshot()
		must(t, err)
		again, err := Restore(m.opt, data)
		must(t, err)
		m.out, m.roll = nil, 0
		if diff := cmp.Diff(m, again, cmp.AllowUnexported(Machine{}, run{}, budget{}, bisect{}, step{}), cmp.Comparer(sameTime)); diff != "" {
			t.Errorf("in %s the snapshot loses something (-was +is):\n%s", s, diff)
		}
	}
}

func sameTime(a, b time.Time) bool { return a.Equal(b) }

func TestMachineValueForms(t *testing.T) {
	for _, c := range []struct {
		form, now string
		known     bool
		low, high float64
		want      string
		ok        bool
	}{
		{"triton", "flashinfer", true, 0, 0, "triton", true},
		{"", "", false, 0, 0, "", true},
		{"0.8", "", false, 0, 0, "0.8", true},
		{"x0.5", "256", true, 0, 0, "128", true},
		{"x0.5", "255", true, 0, 0, "127", true},
		{"x0.5", "0.9", true, 0, 0, "0.45", true},
		{"x.93", "0.88", true, 0, 0, "0.818", true},
		{"x0.5|64", "", false, 0, 0, "64", true},
		{"x0.5", "", false, 0, 0, "", false},
		{"x0.5", "auto", true, 0, 0, "", false},
		{"x0.5|64", "auto", true, 0, 0, "64", true},
		{"x0.5", "3", true, 2, 0, "2", true},
		{"x0.5", "2", true, 2, 0, "2", true}, // the bound is reached
		{"x0.5", "1", true, 2, 0, "1", true}, // and never crossed upwards
		{"x0.9", "1", true, 0, 0, "1", true},
		{"x0.5", "3", true, 1.7, 0, "3", true},
		{"x1.1", "3", true, 0, 3.2, "3", true},
		{"x1.1", "3", true, 0, 0, "4", true},
		{"x1", "3", true, 0, 0, "3", true},
		{"x2", "48", true, 0, 64, "64", true}, // nor
		{"x2", "80", true, 0, 64, "80", true}, // downwards
		{"xformers", "", false, 0, 0, "xformers", true},
	} {
		got, ok := nextValue(c.form, c.now, c.known, c.low, c.high)
		if got != c.want || ok != c.ok {
			t.Errorf("%q of %q in [%v, %v] = %q, %t; want %q, %t", c.form, c.now, c.low, c.high, got, ok, c.want, c.ok)
		}
	}
}

// TestMachineScalingEnds: a rung that scales goes one way, stays in its bounds
// and comes to rest.
func TestMachineScalingEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		factor := rapid.Float64Range(0.01, 4).Draw(t, "factor")
		low := rapid.Float64Range(0, 10).Draw(t, "low")
		high := low + rapid.Float64Range(0.1, 20).Draw(t, "high")
		now := fmt.Sprintf("%.3f", rapid.Float64Range(low, high).Draw(t, "now"))
		for range int(1000*(high-low)) + 10 { // at worst by a thousandth each time
			next, ok := nextValue(fmt.Sprintf("x%f", factor), now, true, low, high)
			if !ok {
				t.Skip("a factor that rounds to nothing")
			}
			if next == now {
				return
			}
			var a, b float64
			fmt.Sscan(now, &a)
			fmt.Sscan(next, &b)
			if b < low-0.001 || b > high+0.001 || (b < a) != (factor < 1) || math.IsNaN(b) {
				t.Fatalf("x%f of %s in [%v, %v] is %s", factor, now, low, high, next)
			}
			now = next
		}
		t.Fatalf("x%f never comes to rest: %s", factor, now)
	})
}

func TestMachineReadsFlags(t *testing.T) {
	argv := strings.Fields("python -m sglang.launch_server --tp 8 --bs=4 --flag --tp=2 --last")
	for flag, want := range map[string]string{"--tp": "2", "--bs": "4", "--flag": "", "--last": ""} {
		if got, ok := flagValue(argv, flag); got != want || !ok {
			t.Errorf("%s is %q, %t; want %q", flag, got, ok, want)
		}
	}
	if _, ok := flagValue(argv, "--t"); ok {
		t.Error("--t is not given")
	}
}

// TestMachineFingerprint: rank, time, address, path and sizes never make
// another cause.
func TestMachineFingerprint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		say := func(label string) string {
			n := rapid.IntRange(0, 1<<20)
			return fmt.Sprintf("TP%d 12:%02d:%02d bad 0x%x at /srv/%s.py:%d, %d.%d GiB", n.Draw(t, label+"rank"), n.Draw(t, label+"m"),
				n.Draw(t, label+"s"), n.Draw(t, label+"address"), rapid.StringMatching(`[a-z]{1,8}`).Draw(t, label+"file"),
				n.Draw(t, label+"line"), n.Draw(t, label+"a"), n.Draw(t, label+"b"))
		}
		print := func(text string) string {
			m := &Machine{}
			m.run.Cause, m.run.Diagnosis.Text = "scheduler_exception", text
			return m.fingerprint()
		}
		if a, b := say("a"), say("b"); print(a) != print(b) {
			t.Fatalf("%q and %q differ: %q, %q", a, b, print(a), print(b))
		}
	})
}

// TestMachineLearnedLimits: history raises built-in floors, lowers nothing, and
// leaves alone what a person set.
func TestMachineLearnedLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opt := DefaultOptions()
		phase := rapid.SampledFrom(phases.Phases()).Draw(t, "phase")
		minutes := func(name string) time.Duration {
			return time.Duration(rapid.IntRange(0, 600).Draw(t, name)) * time.Minute
		}
		learned := Limit{minutes("quiet"), minutes("timeout")}
		opt.Learned = map[phases.Phase]Limit{phase: learned}
		floor := Floors()[phase]
		if got := opt.limit(phase); got.Quiet != max(floor.Quiet, learned.Quiet) || got.Timeout != max(floor.Timeout, learned.Timeout) {
			t.Fatalf("%s: %v from floor %v and learned %v", phase, got, floor, learned)
		}
		set := Limit{floor.Quiet + 1, floor.Timeout + 1}
		opt.Limits[phase] = set
		if got := opt.limit(phase); got != set {
			t.Fatalf("%s: %v, though a person set %v", phase, got, set)
		}
	})
}

// TestMachineEventsSurviveTheJournal: every event and effect comes back as it
// was written.
func TestMachineEventsSurviveTheJournal(t *testing.T) {
	for _, s := range sampleEvents {
		was := Event{Seq: 3, At: dawn, Attempt: 2, Roll: 0.25, Body: s.body}
		data, err := json.Marshal(was)
		must(t, err)
		var is Event
		must(t, json.Unmarshal(data, &is))
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("%s (-was +is):\n%s", s.name, diff)
		}
	}
	for name, sample := range acts {
		act := reflect.ValueOf(sample).Elem().Interface().(Act)
		data, err := json.Marshal(Effect{1, act})
		must(t, err)
		var is Effect
		must(t, json.Unmarshal(data, &is))
		if diff := cmp.Diff(Effect{1, act}, is); diff != "" {
			t.Errorf("%s (-was +is):\n%s", name, diff)
		}
	}
	var e Event
	if err := json.Unmarshal([]byte(`{"seq":1,"event":"from_the_future"}`), &e); err == nil {
		t.Error("an event that is not known is read")
	}
}

func TestMachineReadyRungs(t *testing.T) {
	names := RungNames()
	rungs, err := ReadyRungs(names)
	must(t, err)
	if len(rungs) != len(readyRungs) {
		t.Errorf("%d of %d rungs have a name", len(rungs), len(readyRungs))
	}
	for _, r := range append(slices.Clone(rungs), builtinRungs...) {
		if err := r.validate(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range strings.Fields("graph-capture-oom weights-oom mem-fraction-too-low unsupported-backend xet-frozen p2p-broken numactl-refused cold-jit-caches") {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not ready-made", name)
		}
	}
	if _, err := ReadyRungs([]string{"graph-capture"}); err == nil || !strings.Contains(err.Error(), "graph-capture-oom") {
		t.Errorf("an unknown name is answered with %v", err)
	}
}

func TestMachineEnviron(t *testing.T) {
	got := Spawn{Env: map[string]string{"B": Private + "/b", "A": "1"}}.Environ("/state/private")
	if diff := cmp.Diff([]string{"A=1", "B=/state/private/b"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestMachineJitter: the roll of a step moves the pause both ways, by the share
// that is set.
func TestMachineJitter(t *testing.T) {
	for roll, want := range map[float64]time.Duration{0: 4500 * time.Millisecond, 0.5: 5 * time.Second, 1: 5500 * time.Millisecond} {
		a := newActor(t)
		must(t, a.reach("up"))
		m := a.m
		m.opt.Backoff.Jitter, m.roll, m.budget.Failures = 0.1, roll, 1
		if got := m.pause(false); got != want {
			t.Errorf("roll %v pauses %s, want %s", roll, got, want)
		}
	}
}

// TestMachineMoving: readings of other GPUs than before prove nothing.
func TestMachineMoving(t *testing.T) {
	gpus := func(index int, used int64) Activity { return Activity{GPUs: []GPUActivity{{Index: index, Used: used}}} }
	for name, c := range map[string]struct{ before, now Activity }{
		"one more GPU":  {Activity{}, gpus(0, 1<<40)},
		"another GPU":   {gpus(0, 0), gpus(1, 1<<40)},
		"a GPU less":    {gpus(0, 1<<40), Activity{}},
		"unknown then":  {gpus(0, -1), gpus(0, 1<<40)},
		"unknown now":   {gpus(0, 1<<40), gpus(0, -1)},
		"hardly at all": {gpus(0, 0), gpus(0, 1<<20)},
	} {
		if what := moving(phases.GraphCapture, c.before, c.now, 1); what != "" {
			t.Errorf("%s: %s", name, what)
		}
	}
}

// TestMachineIgnoresTheMonotonicClock: live, times carry a second clock that a
// journal does not keep.
func TestMachineIgnoresTheMonotonicClock(t *testing.T) {
	m, err := New(DefaultOptions())
	must(t, err)
	m.Step(Event{At: time.Now(), Body: Begin{}})
	if at, _ := m.Deadline(); at != at.Round(0) {
		t.Errorf("the deadline %v has a monotonic part", at)
	}
}

func TestMachineDoesNotKnow(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an event that nobody knows is taken")
		}
	}()
	m, err := New(DefaultOptions())
	must(t, err)
	m.Step(Event{At: dawn, Body: strike{}})
}
