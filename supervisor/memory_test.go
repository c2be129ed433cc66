package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/history"
	"sglaunch/internal/statedir"
	"sglaunch/patch"
	"sglaunch/phases"
	"sglaunch/supervisor/journal"
	"sglaunch/supervisor/machine"
)

// remembering is a launch of a test as far as the history sees it.
type remembering struct {
	*memory
	t     *testing.T
	setup Setup
	now   time.Time

	mu   sync.Mutex
	said []string
}

// remember begins a launch in a state directory.
func remember(t *testing.T, dir statedir.Dir, patches ...string) *remembering {
	t.Helper()
	r := &remembering{t: t, now: time.Now()}
	r.setup = Setup{Name: "glm", State: dir, Argv: strings.Fields("/nowhere/python -m sglang.launch_server --model-path /nowhere/glm --tp 2")}
	for _, name := range patches {
		r.setup.Patches = append(r.setup.Patches, patch.Patch{Name: name})
	}
	l, err := dir.NewLaunch("glm", r.now)
	must(t, err)
	r.memory = openMemory(r.setup, l.ID, filepath.Join(l.Path, "private"), func(text string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.said = append(r.said, text)
	})
	r.begun(LaunchRecord{ID: l.ID, Name: "glm", Time: r.now})
	return r
}

// report is what the machine tells at this moment of the test.
func (r *remembering) report(attempt int, e machine.Effect) {
	if a, ok := e.Body.(machine.Report); ok {
		r.told(envelope{Time: r.now, Attempt: attempt, Event: a.Event, Text: a.Text, Fields: a.Fields})
	}
}

// read ends the launch and reads what is kept of it.
func (r *remembering) read(code int) history.Launch {
	r.t.Helper()
	r.finish(code)
	db, err := history.Open(r.t.Context(), r.setup.State.History())
	must(r.t, err)
	defer db.Close()
	l, err := db.Launch(r.t.Context(), r.launch)
	must(r.t, err)
	return l
}

// play performs actions, and gives the history what the machine says.
func (r *remembering) play(a *honest, actions ...string) {
	r.t.Helper()
	for _, action := range actions {
		a.effects = nil
		before := len(a.log)
		a.act(action)
		r.now = a.now
		r.hear(a, before)
	}
}

// hear is what hands and the reader's hook do, in the order of the events.
func (r *remembering) hear(a *honest, before int) {
	for _, e := range a.log[before:] {
		if s, ok := e.Body.(machine.Seen); ok {
			r.seen(e.Attempt, s.Observation, e.At)
		}
	}
	for _, e := range a.effects {
		if s, ok := e.Body.(machine.Spawn); ok {
			r.spawning(e.Attempt, r.setup, s)
		}
		r.report(e.Attempt, e)
	}
}

func (r *remembering) honest() *honest {
	a := &honest{t: r.t, opt: machine.DefaultOptions(), now: r.now}
	a.opt.SGLang, a.opt.Backoff.Jitter, a.opt.Argv = true, 0, r.setup.Argv
	return a
}

// start plays a start whose weights take so long.
func (r *remembering) start(load time.Duration) *honest {
	r.t.Helper()
	a := r.honest()
	r.play(a, "start")
	for _, step := range []struct {
		after  time.Duration
		action string
	}{
		{20 * time.Second, "phase distributed_init"}, {time.Minute, "phase loading_weights"},
		{load / 2, "progress 41 83"}, {load / 2, "phase kv_cache"}, {10 * time.Second, "phase graph_capture"}, {5 * time.Minute, "phase warmup"}, {30 * time.Second, "ready"},
	} {
		a.now = a.now.Add(step.after)
		r.play(a, step.action)
	}
	return a
}

func TestMemoryThreeStartsTeachTheFourth(t *testing.T) {
	dir := stateDir(t)
	for _, load := range []time.Duration{14 * time.Minute, 15 * time.Minute, 17 * time.Minute} {
		r := remember(t, dir)
		l := func() history.Launch { r.start(load); return r.read(0) }()
		a := l.Attempts[0]
		i := slices.IndexFunc(a.Phases, func(s history.Span) bool { return s.Rank == "" && s.Phase == phases.LoadingWeights })
		if i < 0 || a.Phases[i].Took != load || !a.Phases[i].Complete || a.Phases[i].Quiet != load/2 || a.Phases[i].Total != 83 {
			t.Fatalf("kept %+v", a.Phases)
		}
	}
	r := remember(t, dir)
	defer r.finish(0)
	a := r.honest()
	r.play(a, "start")
	told := r.addTo(machine.Report{Event: "phase", Text: "server is process 7", Fields: map[string]any{"phase": "starting"}}, r.now)
	if !strings.Contains(told.Text, "server is process 7; ready in about 22 min, a start usually takes 21 to 24 min here") {
		t.Errorf("says %q", told.Text)
	}
	a.now = a.now.Add(time.Minute)
	r.play(a, "phase loading_weights")
	fields := map[string]any{"done": int64(41), "total": int64(83), "phase": "loading_weights"}
	told = r.addTo(machine.Report{Event: "progress", Text: "weights 41 of 83", Fields: fields}, a.now.Add(8*time.Minute))
	if want := "weights 41 of 83, about 8 min left, usually 14 to 17 min here"; told.Text != want {
		t.Errorf("says %q, want %q", told.Text, want)
	}
	if left, _ := told.Fields["left"].(float64); left < 400 || left > 560 || len(fields) != 3 {
		t.Errorf("left is %v; the journal's fields are %v", told.Fields["left"], fields)
	}
	if limits := r.limits(); limits[phases.GraphCapture] != machine.Floors()[phases.GraphCapture] || limits[phases.LoadingWeights].Quiet != 15*time.Minute {
		t.Errorf("learned %+v", limits[phases.LoadingWeights])
	}
}

// Where history is silent, nothing is added.
func TestMemoryUnknownStaysUnknown(t *testing.T) {
	r := remember(t, stateDir(t))
	defer r.finish(0)
	a := r.honest()
	r.play(a, "start", "phase loading_weights")
	for _, report := range []machine.Report{
		{Event: "progress", Text: "weights 1 of 83", Fields: map[string]any{"done": int64(1), "total": int64(83), "phase": "loading_weights"}},
		{Event: "progress", Text: "graphs 9 of 10", Fields: map[string]any{"done": int64(9), "total": int64(10), "phase": "graph_capture"}},
		{Event: "progress", Fields: map[string]any{"activity": "download"}},
		{Event: "phase", Text: "kv_cache", Fields: map[string]any{"phase": "kv_cache", "before": "loading_weights", "seconds": 3600.0}},
		{Event: "phase", Text: "odd", Fields: map[string]any{"phase": "noon"}},
		{Event: "fault", Text: "line 7"},
	} {
		if told := r.addTo(report, a.now.Add(time.Minute)); told.Text != report.Text {
			t.Errorf("%q became %q", report.Text, told.Text)
		}
	}
}

func TestMemorySlowerThanUsual(t *testing.T) {
	dir := stateDir(t)
	for range 5 {
		r := remember(t, dir)
		r.start(10 * time.Minute)
		r.finish(0)
	}
	r := remember(t, dir)
	defer r.finish(0)
	told := r.addTo(machine.Report{Event: "phase", Text: "kv_cache (loading_weights took 23m0s)",
		Fields: map[string]any{"phase": "kv_cache", "before": "loading_weights", "seconds": 23 * 60.0}}, r.now)
	want := "kv_cache (loading_weights took 23m0s); loading_weights was 2.3 x slower than the last 5 on this disk (10 min); ready in about 6 min, a start usually takes 17 min here"
	if told.Text != want {
		t.Errorf("says %q\nwant %q", told.Text, want)
	}
}

// Cold and warm starts have keys of their own, and each attempt the key that it
// ran with: patches in force, flags as rungs changed them.
func TestMemoryKeysOfAttempts(t *testing.T) {
	r := remember(t, stateDir(t), "one", "two")
	a := r.honest()
	a.patches = []machine.ActivePatch{{Name: "one", Files: []string{"/site/one.py"}}}
	rungs, err := machine.ReadyRungs([]string{"graph-capture-oom"})
	must(t, err)
	a.opt.Rungs = rungs
	r.play(a, "start")
	r.compiling(1, []string{"ninja", "gcc"}) // a warm start runs them too
	r.story.found = warmth{pages: history.Warm, jit: history.Warm, private: history.Cold}
	r.play(a, "phase graph_capture", "crash oom_graph_capture high", "start")
	r.compiling(2, []string{"ptxas"})
	r.spawning(2, r.setup, machine.Spawn{Env: map[string]string{"TRITON_CACHE_DIR": machine.Private + "/triton"}})
	l := r.read(10)
	if len(l.Attempts) != 2 {
		t.Fatalf("%+v", l)
	}
	first, second := l.Attempts[0], l.Attempts[1]
	if first.Key.Patches != "one" || l.Key.Patches != "one two" {
		t.Errorf("patches: %q in force, %q asked for", first.Key.Patches, l.Key.Patches)
	}
	if second.Key.Flags != first.Key.Flags || second.Key.Caches.JIT != history.Cold {
		t.Errorf("with caches of its own it is %+v, before %+v", second.Key, first.Key)
	}
	want := []history.Change{{Rung: "graph-capture-oom", Text: "with graph-capture-oom (--mem-fraction-static 0.8)"}}
	if diff := cmp.Diff(want, second.Changes); diff != "" || len(first.Changes) > 0 {
		t.Errorf("first changed %v, second (-want +got):\n%s", first.Changes, diff)
	}
}

func TestMemoryChangedFlagsAreAnotherServer(t *testing.T) {
	r := remember(t, stateDir(t))
	r.play(r.honest(), "start")
	r.spawning(1, r.setup, machine.Spawn{Flags: []machine.FlagChange{{Flag: "--mem-fraction-static", Value: "0.8"}}})
	if l := r.read(0); l.Attempts[0].Key.Flags == l.Key.Flags {
		t.Error("a changed flag left the key as it was")
	}
}

// A crash loop that gave up leaves its budget to the next start of the same
// server, and to no other.
func TestMemoryBudgetsOutliveARestart(t *testing.T) {
	dir := stateDir(t)
	r := remember(t, dir)
	a := r.honest()
	a.opt.Attempts, a.opt.SameCause, a.opt.NoProgress = 3, 0, 0
	for range 3 {
		r.play(a, "start", "phase loading_weights", "crash nccl_error medium")
	}
	if a.m.State() != machine.StateEnded {
		t.Fatalf("the loop goes on: %s", a.m.State())
	}
	r.finish(a.finish().Code)

	next := remember(t, dir)
	next.now = a.now
	begin := next.before(a.opt.Window)
	if begin.Earlier == nil || len(begin.Earlier.Spawns) != 3 || begin.Earlier.Cause != "nccl_error" || begin.Earlier.Same != 3 {
		t.Fatalf("it leaves %+v", begin.Earlier)
	}
	b := next.honest()
	b.opt = a.opt
	b.send(begin)
	next.hear(b, 0)
	next.play(b, "start", "phase loading_weights", "crash nccl_error medium")
	end := b.finish()
	if !strings.Contains(end.Reason, "4 launches in 2h0m0s are used up") || end.Code != machine.CodeLater {
		t.Errorf("after one more crash it ends with %d: %s", end.Code, end.Reason)
	}
	next.finish(end.Code)

	other := remember(t, dir, "a patch")
	defer other.finish(0)
	if begin := other.before(a.opt.Window); begin.Earlier != nil {
		t.Errorf("whoever changed something begins with %+v", begin.Earlier)
	}
	if late := other.before(time.Nanosecond); late.Earlier != nil {
		t.Errorf("out of the window is %+v", late.Earlier)
	}
}

func TestMemoryOfTheLastGoodStart(t *testing.T) {
	dir := stateDir(t)
	r := remember(t, dir, "one", "two")
	a := r.honest()
	a.patches = []machine.ActivePatch{{Name: "two", Files: []string{"/site/two.py"}}}
	r.play(a, "start", "ready", "stop")
	r.finish(0)
	next := remember(t, dir, "one", "two", "three")
	defer next.finish(0)
	want := &machine.LastGood{Patches: []string{"two"}}
	if diff := cmp.Diff(want, next.before(time.Hour).LastGood); diff != "" {
		t.Error(diff)
	}
}

// A supervisor that takes over reads the journal and loses nothing, though the
// one before had written nothing to the history.
func TestMemoryResumes(t *testing.T) {
	dir := stateDir(t)
	r := remember(t, dir)
	a := r.honest()
	var entries []journal.Entry
	m, err := machine.New(a.opt)
	must(t, err)
	r.finish(0) // the one before is cut off here
	for _, action := range []string{"start", "phase loading_weights", "progress 41 83", "phase kv_cache"} {
		a.now = a.now.Add(time.Minute)
		a.act(action)
	}
	for _, e := range a.log {
		entries = append(entries, journal.Entry{Event: e, Effects: m.Step(e)})
	}
	next := remember(t, dir)
	next.launch = r.launch
	next.resume(entries)
	l := next.read(0)
	if len(l.Attempts) != 1 || next.story.phase != phases.KVCache {
		t.Fatalf("kept %+v, in %s", l, next.story.phase)
	}
	loading := slices.IndexFunc(l.Attempts[0].Phases, func(s history.Span) bool { return s.Rank == "" && s.Phase == phases.LoadingWeights })
	rank := slices.IndexFunc(l.Attempts[0].Phases, func(s history.Span) bool { return s.Rank == "TP0" && s.Phase == phases.LoadingWeights })
	if loading < 0 || rank < 0 {
		t.Fatalf("kept %+v", l.Attempts[0].Phases)
	}
	if s := l.Attempts[0].Phases[loading]; s.Took != 2*time.Minute || s.Done != 41 || s.Total != 83 {
		t.Errorf("kept %+v", s)
	}
}

func TestMemoryWithoutADatabase(t *testing.T) {
	dir := stateDir(t)
	must(t, os.WriteFile(dir.History(), []byte("this is no database, and long enough to be read as one"), 0o600))
	r := remember(t, dir)
	r.finish(0)
	if len(r.said) != 1 || !strings.Contains(r.said[0], "the history was damaged; it is kept as "+dir.History()+".damaged-") {
		t.Errorf("of a damaged file it says %q", r.said)
	}
	must(t, os.RemoveAll(dir.State))
	r = remember(t, stateDir(t))
	r.finish(0)
	if len(r.said) > 0 {
		t.Errorf("of a missing file it says %q", r.said)
	}

	closed := stateDir(t)
	must(t, os.Mkdir(closed.History(), 0o700)) // no file can be made
	r = remember(t, closed)
	a := r.start(time.Minute)
	r.play(a, "crash segfault")
	if begin := r.before(time.Hour); begin != (machine.Begin{}) {
		t.Errorf("knows %+v", begin)
	}
	r.finish(10)
	r.finish(10) // twice is once
	r.told(envelope{Event: "attempt_started", Attempt: 2})
	r.measure(t.Context(), 2)
	if len(r.said) != 1 || !strings.Contains(r.said[0], "cannot open the history") {
		t.Errorf("of a path that is no file it says %q", r.said)
	}
}

// What a person has changed since the last launch that served is named; another
// model is another server.
func TestMemoryOfWhatDiffers(t *testing.T) {
	dir, caches := stateDir(t), t.TempDir()
	t.Setenv("SGLANG_CACHE_DIR", caches)
	tuning := filepath.Join(caches, "flashinfer", "autotune", "0.6.11", "sm100", "00", "rank_tp0_pp0_dp0.json")
	must(t, os.MkdirAll(filepath.Dir(tuning), 0o700))
	must(t, os.WriteFile(tuning, []byte("{}"), 0o600))
	long := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(tuning, long, long))
	r := remember(t, dir)
	r.play(r.honest(), "start", "ready", "stop")
	r.finish(0)

	differs := func(change func(*memory)) []string {
		next := remember(t, dir)
		defer next.finish(0)
		next.look.setup.Env = []string{"SGLANG_CACHE_DIR=" + caches}
		change(next.memory)
		b := next.before(time.Hour)
		if b.LastGood == nil {
			t.Fatal("no last good launch")
		}
		return b.LastGood.Differs
	}
	if d := differs(func(*memory) {}); len(d) != 0 {
		t.Errorf("nothing has changed, and %q differs", d)
	}
	if d := differs(func(m *memory) { m.asked.Flags = "other" }); len(d) != 1 || !strings.Contains(d[0], "flags") {
		t.Errorf("other flags: %q", d)
	}
	if d := differs(func(m *memory) { m.asked.Flags, m.asked.Model = "other", "other" }); len(d) != 0 {
		t.Errorf("another model: %q", d)
	}
	aside := tuning + asideMark + "1" // of a launch whose answers were wrong
	must(t, os.WriteFile(aside, []byte("{}"), 0o600))
	soon := time.Now().Add(time.Hour)
	must(t, os.Chtimes(aside, soon, soon))
	if d := differs(func(*memory) {}); len(d) != 0 {
		t.Errorf("a cache was put aside, and %q differs", d)
	}
	must(t, os.Chtimes(tuning, soon, soon))
	if d := differs(func(*memory) {}); len(d) != 1 || !strings.Contains(d[0], "autotune cache") {
		t.Errorf("another cache: %q", d)
	}
}
