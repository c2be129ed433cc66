package tune

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sglaunch/internal/probe/answers"
)

// world is a machine on which the rate of a launch is known but for noise.
type world struct {
	*actor
	r     *rand.Rand
	seed  uint64
	noise float64                                    // between launches, of the logarithm
	rate  func(t Trial, hours float64) float64       // the truth
	fails func(w *world, t Trial) (e Ended, is bool) // before it is ready
	kills float64                                    // chance that the tuner dies between two records
	slow  float64                                    // steps take up to so much longer than expected
}

func newWorld(t tester, seed uint64, configs int) *world {
	w := &world{actor: newActor(t), seed: seed, r: rand.New(rand.NewPCG(seed, 0)), noise: 0.005}
	w.rate = func(Trial, float64) float64 { return 1000 }
	axis := Axis{}
	for i := range configs {
		axis.Values = append(axis.Values, TextValue(fmt.Sprint("v", i)))
	}
	w.study.Axes["--x"] = axis
	return w
}

// night plays the night to its end and returns its verdict.
func (w *world) night() Verdict {
	w.t.Helper()
	w.plan()
	for range 100_000 {
		if !w.n.Done() && w.r.Float64() < w.kills {
			w.kill()
		}
		do := w.n.Next(w.now)
		if end, over := do.(End); over && (w.n.serving == nil) != (end.Serving == 0) {
			w.t.Fatalf("it ends with %+v, and %+v serves", end, w.n.serving)
		}
		if !w.perform(do) {
			for _, f := range w.n.decided.Findings {
				if f.Won != (f.Text == "") {
					w.t.Fatalf("why it did not win is told of one that did, or not told: %+v", f)
				}
			}
			return *w.n.decided
		}
	}
	w.t.Fatal("the night does not end")
	return Verdict{}
}

// perform does one step of one action: as much as leads to the next record.
func (w *world) perform(do Action) (more bool) {
	w.t.Helper()
	switch do := do.(type) {
	case Note:
		w.write(do.Body)
	case Settle:
		w.pass(w.study.Expect.Release)
		w.write(Settled{After: do.After, OK: true})
	case Wait:
		w.now = do.Until
	case Launch:
		w.start(do)
	case Ask:
		w.pass(w.study.Expect.Release / 2)
		w.write(Answered{Launch: do.Launch, Took: w.study.Expect.Release / 2, Sample: w.answers()})
	case Flush:
		w.write(Flushed{Launch: do.Launch, OK: w.r.Float64() < 0.9})
	case Measure:
		w.measure(do)
	case Stop:
		w.write(Ended{Launch: do.Launch, Outcome: "stopped", Text: do.Why})
	case HandOver:
		w.write(Serving(do))
	case End:
		return false
	}
	return true
}

// answers are those of a server that is sound: to each prompt the usual one, or
// in one of four cases another.
func (w *world) answers() *answers.Sample {
	const n, length = 24, 200
	s := answers.Sample{Figures: answers.Figures{Answers: n, Asked: 256, Variety: 0.6 + 0.05*w.r.Float64()}}
	for i := range n {
		s.Tokens += length + w.r.IntN(50)
		s.Sums = append(s.Sums, fmt.Sprint(i, max(0, w.r.IntN(12)-8)))
	}
	return &s
}

func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(time.Duration(float64(d) * (1 + w.slow*w.r.Float64())))
}

func (w *world) start(do Launch) {
	l := w.n.openLaunch()
	t := w.n.trials[do.Slot.Trial]
	switch {
	case l == nil:
		w.write(do.Intended)
		return
	case l.launched == nil:
		w.write(Launched{Launch: l.Launch, ID: fmt.Sprint(l.Launch)})
		return
	}
	if w.fails != nil {
		if e, is := w.fails(w, t); is {
			w.pass(time.Minute)
			e.Launch = l.Launch
			w.write(e)
			return
		}
	}
	began := w.now
	if w.pass(w.study.Expect.Start); w.now.After(do.Until) {
		w.now = do.Until
		w.write(Ended{Launch: l.Launch, Outcome: "timed_out", Text: "over its time"})
		return
	}
	w.write(Ready{Launch: l.Launch, Took: w.now.Sub(began)})
}

func (w *world) measure(do Measure) {
	l := w.n.openLaunch()
	if l.measuring == nil {
		w.write(Measuring{do.Launch, do.Point})
		return
	}
	// The launch's own noise: the same at each of its points.
	own := rand.New(rand.NewPCG(w.seed, uint64(do.Launch))).NormFloat64()
	hours := w.now.Sub(evening).Hours()
	rate := w.rate(w.n.trials[l.Slot.Trial], hours) * math.Exp(w.noise*own)
	if len(w.study.Loads[0].Concurrency) > 1 { // more at a time, more in all
		rate *= float64(do.Point.Concurrency) / float64(do.Point.Concurrency+24)
	}
	m := flat(rate)(do.Point)
	m.Launch, m.Point, m.Began = do.Launch, do.Point, w.now
	w.pass(w.study.Expect.Load)
	m.Took = w.now.Sub(m.Began)
	w.write(m)
}

// seeds is how many nights are played: a few, or what a claim needs.
func seeds(few, many int) int {
	if os.Getenv("SGLAUNCH_LONG") != "" {
		return many
	}
	return few
}

func TestNoWinnerAmongEquals(t *testing.T) {
	nights, wins, trends := seeds(60, 2000), 0, 0
	for seed := range nights {
		w := newWorld(t, uint64(seed), 20)
		w.noise = []float64{0.005, 0.01, 0.02}[seed%3]
		w.study.Deadline = Deadline{In: 12 * time.Hour}
		v := w.night()
		if v.Winner != "" {
			wins++
		}
		if v.Trend != 0 {
			trends++
		}
	}
	if wins*20 > nights || trends*10 > nights {
		t.Errorf("%d of %d nights have a winner among equals, %d a trend", wins, nights, trends)
	}
	t.Logf("%d of %d nights have a winner among 20 equals, %d a trend", wins, nights, trends)
}

func TestDriftIsFlaggedAndWinsNothing(t *testing.T) {
	nights, wins, flagged := seeds(40, 1000), 0, 0
	for seed := range nights {
		w := newWorld(t, uint64(seed), 20)
		w.study.Deadline = Deadline{In: 12 * time.Hour}
		w.rate = func(_ Trial, hours float64) float64 { return 1000 * (1 - 0.03*hours/5.5) } // the night takes 5.5 hours
		v := w.night()
		if v.Winner != "" {
			wins++
		}
		if v.Trend < 0 || len(w.n.drifts) > 0 {
			flagged++
		}
	}
	if wins > 0 || flagged*100 < nights*95 {
		t.Errorf("a drift of -3 %%: %d of %d nights have a winner, %d say that there is a drift", wins, nights, flagged)
	}
	t.Logf("a drift of -3 %%: %d of %d nights flag it, %d have a winner", flagged, nights, wins)
}

func TestTheKnownBestIsFound(t *testing.T) {
	nights, found, most := seeds(40, 1000), 0, 0
	for seed := range nights {
		w := newWorld(t, uint64(seed), 12)
		best := fmt.Sprintf("--x v%d", seed%12)
		w.rate = func(t Trial, _ float64) float64 {
			if t.Name == best {
				return 1060
			}
			return 1000
		}
		v := w.night()
		if v.Winner != "" && w.n.trials[v.Winner].Name == best {
			found++
		}
		most = max(most, len(w.n.launches))
	}
	if found*100 < nights*95 || most > 32 {
		t.Errorf("a best of +6 %% among 12 is found in %d of %d nights, with up to %d launches", found, nights, most)
	}
	t.Logf("a best of +6 %% among 12 is found in %d of %d nights, with up to %d launches", found, nights, most)
}

// TestFarBehindIsCutShort: of trials that differ by some percent either way, as
// settings do, those far behind are measured less, and the best is found all the
// same.
func TestFarBehindIsCutShort(t *testing.T) {
	nights := seeds(20, 500)
	night := func(seed int, prune bool) (found bool, runs int) {
		w := newWorld(t, uint64(seed), 12)
		w.study.Prune, w.study.Loads[0].Concurrency = prune, []int{8, 32, 64}
		w.study.Deadline = Deadline{In: 12 * time.Hour}
		w.noise = 0.01
		best := fmt.Sprintf("--x v%d", seed%12)
		gain := map[string]float64{}
		for i, axis := 0, w.study.Axes["--x"]; i < len(axis.Values); i++ {
			gain["--x "+axis.Values[i].Text] = math.Min(0, 0.05*w.r.NormFloat64())
		}
		gain[best] = 0.08
		w.rate = func(t Trial, _ float64) float64 { return 1000 * math.Exp(gain[t.Name]) }
		v := w.night()
		for _, l := range w.n.launches {
			runs += len(l.measured)
		}
		return v.Winner != "" && w.n.trials[v.Winner].Name == best, runs
	}
	found, foundWhole, runs, whole := 0, 0, 0, 0
	for seed := range nights {
		ok, n := night(seed, true)
		found, runs = found+boolean(ok), runs+n
		ok, n = night(seed, false)
		foundWhole, whole = foundWhole+boolean(ok), whole+n
	}
	if found < foundWhole-nights/20 || runs*100 > whole*90 {
		t.Errorf("with %d of %d measurements the best is found in %d nights of %d, else in %d", runs, whole, found, nights, foundWhole)
	}
	t.Logf("with %d of %d measurements the best is found in %d nights of %d, else in %d", runs, whole, found, nights, foundWhole)
}

// TestAnyNight plays nights of every kind: slow steps, failures of every cause,
// deadlines that are too near, deaths of the tuner between any two records.
func TestAnyNight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		w.night()
		w.mustServe(t)
		w.mustCountOnce(t)
		w.mustReplay(t)
	})
}

func anyWorld(t *rapid.T) *world {
	seed := rapid.Uint64().Draw(t, "seed")
	w := newWorld(t, seed, rapid.IntRange(1, 8).Draw(t, "configs"))
	w.study.Search = rapid.SampledFrom([]string{OneAtATime, Product, Halving}).Draw(t, "search")
	w.study.Promote = rapid.SampledFrom([]string{PromoteAsk, PromoteServe}).Draw(t, "promote")
	w.study.Deadline.In = time.Duration(rapid.IntRange(40, 700).Draw(t, "minutes")) * time.Minute
	w.study.Gate.Soak = rapid.SampledFrom([]time.Duration{0, 5 * time.Minute}).Draw(t, "soak")
	w.study.Loads[0].Concurrency = rapid.SampledFrom([][]int{{32}, {8, 32}, {1, 8, 32}}).Draw(t, "concurrency")
	if w.study.Search != OneAtATime {
		w.study.Axes["--mem-fraction-static"] = Axis{Values: []Value{TextValue("0.8"), TextValue("0.9")}}
	}
	w.slow = rapid.Float64Range(0, 0.2).Draw(t, "slow")
	w.kills = rapid.SampledFrom([]float64{0, 0.01, 0.1}).Draw(t, "kills")
	w.noise = rapid.SampledFrom([]float64{0, 0.01, 0.1}).Draw(t, "noise")
	chance := rapid.SampledFrom([]float64{0, 0.2, 0.6}).Draw(t, "failing")
	causes := append(slices.Sorted(maps.Keys(classes)), "", "segfault")
	w.fails = func(w *world, t Trial) (Ended, bool) {
		if t.Baseline() || w.r.Float64() >= chance {
			return Ended{}, false
		}
		return Ended{Outcome: "crashed", Cause: causes[w.r.IntN(len(causes))], Text: "it died"}, true
	}
	gain := rapid.Float64Range(0.8, 1.2).Draw(t, "gain")
	w.rate = func(t Trial, _ float64) float64 {
		if t.Name == "--x v0" {
			return 1000 * gain
		}
		return 1000
	}
	return w
}

// mustServe: something serves, in time, and what was asked for.
func (w *world) mustServe(t *rapid.T) {
	if w.n.serving == nil {
		t.Fatalf("nothing serves: %+v", w.n.done)
	}
	at := w.records[len(w.records)-1].At
	// Each death of the tuner in the morning costs one start more.
	lost := 0
	for _, l := range w.n.launches {
		if l.Slot.Stage == Morning && l.interrupted {
			lost++
		}
	}
	late := at.Sub(w.n.Deadline())
	if allowed := time.Duration(lost) * 15 * time.Minute; late > allowed {
		t.Errorf("it serves %s after the deadline, with %d starts lost", late, lost)
	}
	winner, serving := w.n.decided.Winner, w.n.serving.Trial
	if serving != BaselineID && (serving != winner && w.study.Promote == PromoteAsk || winner == "") {
		t.Errorf("%s serves, the winner is %q, promote is %s", serving, winner, w.study.Promote)
	}
}

// mustCountOnce: every trial is measured or said to be skipped, and nothing
// counts twice.
func (w *world) mustCountOnce(t *rapid.T) {
	for _, trial := range w.n.plan.Trials[1:] {
		screened := len(w.n.samples(trial.ID, Screen))
		_, skipped := w.n.skipped(trial.ID)
		if screened == 0 && !skipped || screened > 1 {
			t.Errorf("%s has %d launches in the screening that count, skipped is %t", trial.Name, screened, skipped)
		}
		if pairs := w.n.paired(trial.ID); pairs > w.study.Repeats {
			t.Errorf("%s has %d pairs, wanted are %d", trial.Name, pairs, w.study.Repeats)
		}
	}
	seen := map[Slot]int{}
	for _, l := range w.n.launches {
		if w.n.outcome(l).status == scored {
			seen[l.Slot]++
		}
	}
	for slot, times := range seen {
		if times > 1 {
			t.Errorf("%+v counts %d times", slot, times)
		}
	}
}

// mustReplay: the same records give the same decisions.
func (w *world) mustReplay(t *rapid.T) {
	again := &Night{}
	for i, r := range w.records {
		if err := again.Add(r); err != nil {
			t.Fatal(err)
		}
		if i+1 == len(w.records) {
			break
		}
		following := w.records[i+1]
		switch following.Body.(type) {
		case Skipped, LeftOut, Drifted, Broke, Decided, Done:
			note, ok := again.Next(following.At).(Note)
			if !ok || !cmp.Equal(note.Body, following.Body) {
				t.Fatalf("after record %d it notes %+v, then it was %+v", r.Seq, note.Body, following.Body)
			}
		}
	}
}
