package phases

import (
	"os"
	"strings"
	"testing"
)

// feedAll gives every observation of an output.
func feedAll(t *testing.T, log string) (*Tracker, []Observation) {
	t.Helper()
	tracker := NewTracker(BuiltinRules())
	all := append([]Observation(nil), tracker.Feed([]byte(log))...)
	return tracker, append(all, tracker.Finish()...)
}

func kinds(all []Observation, kind Kind) (found []Observation) {
	for _, o := range all {
		if o.Kind == kind {
			found = append(found, o)
		}
	}
	return found
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".log")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestLiveHealthy: a good start tells its phases in order, every step of its
// counters, ready once, serving once, and no fault.
func TestLiveHealthy(t *testing.T) {
	tracker, all := feedAll(t, fixture(t, "0.5.13/healthy-tp4"))
	if faults := kinds(all, KindFault); len(faults) > 0 {
		t.Errorf("faults: %+v", faults)
	}
	for _, kind := range []Kind{KindReady, KindServing} {
		if n := len(kinds(all, kind)); n != 1 {
			t.Errorf("%s said %d times", kind, n)
		}
	}
	if n := len(kinds(all, KindDrift)); n != 0 {
		t.Errorf("drift said %d times", n)
	}
	steps := 0
	for _, o := range kinds(all, KindProgress) {
		if o.Unit == "shards" {
			steps++
		}
	}
	if steps != 12 {
		t.Errorf("%d steps of 12 shards", steps)
	}
	last := Starting
	for _, o := range kinds(all, KindPhase) {
		if o.Phase < last {
			t.Errorf("the launch went back from %s to %s at line %d", last, o.Phase, o.Line)
		}
		last = o.Phase
	}
	if !tracker.Ready() || !tracker.IsSGLang() || tracker.Phase() != Serving || tracker.Fault() != nil {
		t.Errorf("ready %t, sglang %t, phase %s, fault %v", tracker.Ready(), tracker.IsSGLang(), tracker.Phase(), tracker.Fault())
	}
}

// TestLiveFaultIsCertainOnlyOnHardSignals: a fragment alone proves nothing while
// the stream goes on.
func TestLiveFaultIsCertainOnlyOnHardSignals(t *testing.T) {
	tracker := NewTracker(BuiltinRules())
	for _, o := range tracker.Feed([]byte("[2026-02-19 05:48:09 TP1] Failed to initialize x: CUDA out of memory. Tried to allocate 24.00 MiB.\n")) {
		if o.Certain {
			t.Errorf("certain: %+v", o)
		}
	}
	if tracker.Report().Failed {
		t.Error("failed although the server may live on")
	}
	certain := 0
	for _, o := range tracker.Feed([]byte("[2026-02-19 05:48:10 TP1] Scheduler hit an exception: Traceback (most recent call last):\n  File \"/x/sglang/a.py\", line 1, in f\nValueError: x\n")) {
		if o.Kind == KindFault && o.Certain {
			certain++
		}
	}
	if certain == 0 || !tracker.Report().Failed {
		t.Error("not failed although the scheduler hit an exception")
	}
	if f := tracker.Fault(); f == nil || !f.Certain || f.Rank != "TP1" {
		t.Errorf("fault: %+v", f)
	}
}

// TestDrain: after an orderly shutdown has begun nothing is a failure.
func TestDrain(t *testing.T) {
	_, all := feedAll(t, fixture(t, "0.5.14/drain-noise"))
	if len(kinds(all, KindDrain)) == 0 || len(kinds(all, KindFault)) > 0 {
		t.Errorf("drains %d, faults %+v", len(kinds(all, KindDrain)), kinds(all, KindFault))
	}
}

// TestDrift: a start that gets ready although an expected line never came says
// so once, with the rule.
func TestDrift(t *testing.T) {
	log := fixture(t, "0.5.9/healthy-single")
	drifted := strings.ReplaceAll(log, "Load weight end.", "Weights are in.")
	_, all := feedAll(t, drifted)
	found := kinds(all, KindDrift)
	if len(found) != 1 || found[0].Rule != "weights-end" {
		t.Errorf("drift: %+v", found)
	}
	if tracker, _ := feedAll(t, drifted); len(tracker.Report().Drift) != 1 {
		t.Errorf("report: %v", tracker.Report().Drift)
	}
}

// TestIsSGLang: another program's output is none of SGLang's.
func TestIsSGLang(t *testing.T) {
	for _, log := range []string{"hello\n", "Traceback (most recent call last):\nValueError: x\n", "INFO: Started server process [1]\n", "[GPU0] 41 C\n", ""} {
		if tracker, _ := feedAll(t, log); tracker.IsSGLang() {
			t.Errorf("%q is taken for SGLang's", log)
		}
	}
	for _, log := range []string{"[2026-02-19 05:48:02 TP1] anything\n", "[DP1 TP0] anything\n"} {
		if tracker, _ := feedAll(t, log); !tracker.IsSGLang() {
			t.Errorf("%q is not taken for SGLang's", log)
		}
	}
}

// TestLastLines: each rank keeps its own, however much the others talk.
func TestLastLines(t *testing.T) {
	var log strings.Builder
	log.WriteString("[2026-02-19 05:48:02 TP3] the last words of TP3\n")
	for range 500 {
		log.WriteString("[2026-02-19 05:48:02 TP0] chatter\n")
	}
	tracker, _ := feedAll(t, log.String())
	if got := tracker.LastLines("TP3"); len(got) != 1 || got[0] != "the last words of TP3" {
		t.Errorf("TP3: %q", got)
	}
	if got := tracker.LastLines("TP0"); len(got) != 20 {
		t.Errorf("TP0: %d lines", len(got))
	}
	if got := tracker.LastLines("TP9"); got != nil {
		t.Errorf("TP9: %q", got)
	}
}

// TestCauses: every cause says whether a relaunch helps and what to do.
func TestCauses(t *testing.T) {
	for _, c := range Causes() {
		if c.Name == "" || c.Retry == "" || c.Cure == "" || c.Remedy == "" {
			t.Errorf("incomplete: %+v", c)
		}
	}
	if _, ok := LookupCause("unknown"); !ok {
		t.Error("unknown is not in the catalogue")
	}
}

// TestUserRuleReplaces: a rule of the same id stands in place of the built-in.
func TestUserRuleReplaces(t *testing.T) {
	mine, err := NewRuleSet([]Rule{{ID: "ready", Kind: RuleReady, Lit: "open for business"}, {ID: "mine", Kind: RuleNote, Lit: "note this"}})
	if err != nil {
		t.Fatal(err)
	}
	set := BuiltinRules().With(mine)
	if got, want := len(set.Rules()), len(BuiltinRules().Rules())+1; got != want {
		t.Errorf("%d rules, want %d", got, want)
	}
	if r, _ := set.Rule("ready"); r.Lit != "open for business" {
		t.Errorf("ready is %q", r.Lit)
	}
	tracker := NewTracker(set)
	tracker.Feed([]byte("[2026-02-19 05:49:02] open for business\n"))
	if !tracker.Ready() {
		t.Error("one's own ready line is not ready")
	}
}

// TestMiss: lost bytes end the line that they cut and belong to no line; what
// follows is at its place in the stream.
func TestMiss(t *testing.T) {
	first := "[2026-02-19 05:48:40 TP0] Load weight begin. avail mem=138.20 GB\n[2026-02-19 05:48:41 TP0] a line that is c"
	last := "[2026-02-19 05:55:02 TP0] Load weight end. type=M, avail mem=57.26 GB, mem usage=80.94 GB.\n"
	tracker := NewTracker(BuiltinRules())
	all := append([]Observation(nil), tracker.Feed([]byte(first))...)
	all = append(all, tracker.Miss(1000)...)
	all = append(all, tracker.Feed([]byte(last))...)
	begun, ended := all[0], all[len(all)-1]
	if begun.Rule != "weights-begin" || begun.Offset != 0 || begun.Line != 1 {
		t.Errorf("first: %+v", begun)
	}
	if want := int64(len(first) + 1000); ended.Rule != "weights-end" || ended.Offset != want || ended.Line != 3 {
		t.Errorf("last: %+v, want offset %d", ended, want)
	}
}

// TestBehindBars: what is printed behind a bar is a line of its own, with what
// stands before every such line; the bar counts.
func TestBehindBars(t *testing.T) {
	const bar = "Capturing batches (bs=448 avail_mem=87.41 GB):   8%|8         | 4/51 [00:20<03:35,  4.59s/it]"
	for behind, want := range map[string]string{
		"   Killed":                              "main: Killed",
		"Fatal Python error: Segmentation fault": "main: Fatal Python error: Segmentation fault",
		"[rank1]:[E129 08:52:51.685 NCCL.cpp:15] Watchdog caught collective operation timeout: WorkNCCL(x)": "TP1: [E129 08:52:51.685 NCCL.cpp:15] Watchdog caught collective operation timeout: WorkNCCL(x)",
	} {
		tracker, _ := feedAll(t, "[2025-07-08 06:56:38 TP0] Capture cuda graph begin. avail mem=90.21 GB\n"+bar+bar+behind+"\n")
		r := tracker.Report()
		if r.Root == nil || r.Root.Rank+": "+r.Root.Text != want {
			t.Errorf("%s: root %+v, want %s", behind, r.Root, want)
		}
		if r.Progress == nil || r.Progress.Done != 4 || r.Progress.Total != 51 {
			t.Errorf("%s: progress %+v, want 4 of 51", behind, r.Progress)
		}
	}
	tracker, all := feedAll(t, bar+"   \n"+bar+"\n")
	if n := len(kinds(all, KindFault)); n > 0 || tracker.Report().Failed {
		t.Errorf("%d faults in bars that nothing follows", n)
	}
}
