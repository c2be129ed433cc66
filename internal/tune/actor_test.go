package tune

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sglaunch/internal/probe/answers"
	"sglaunch/internal/tune/bench"
)

// tester is what an actor needs of a test, be it one of rapid.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// actor plays a night: it performs what Night asks for as a script says, or as a
// world does.
type actor struct {
	t       tester
	study   Study
	base    map[string]Value
	facts   Facts
	n       *Night
	now     time.Time
	records []Record
	since   int  // records before the present line
	stale   bool // caches cannot be emptied
	seed    int64
	said    map[string]string // of the answers in the present line
}

var evening = time.Date(2026, 2, 19, 22, 0, 0, 0, time.UTC)

// baselineFirst is a seed with which the baseline comes first in the odd blocks of
// the scripts.
const baselineFirst = 110

func newActor(t tester) *actor {
	s := DefaultStudy()
	s.Name, s.Base = "night", "launch.toml"
	s.Deadline = Deadline{In: 10 * time.Hour}
	s.Loads = []Load{{Name: "chat", Bench: bench.Serving, Input: 1024, Output: 256, Concurrency: []int{32}}}
	s.Expect = Estimate{Start: 6 * time.Minute, Load: 2 * time.Minute, Release: time.Minute}
	s.Gate.Soak = 0 // of the scripts, those that are about it set it
	s.Axes = map[string]Axis{}
	return &actor{t: t, study: s, base: map[string]Value{}, n: &Night{}, now: evening, seed: baselineFirst}
}

// write records one fact, as the journal would.
func (a *actor) write(b Body) {
	a.t.Helper()
	r := Record{a.n.Seq(), a.now, b}
	if err := a.n.Add(r); err != nil {
		a.t.Fatal(err)
	}
	a.records = append(a.records, r)
}

func (a *actor) plan() {
	a.t.Helper()
	if err := a.study.Validate(); err != nil {
		a.t.Fatal(err)
	}
	trials, err := a.study.Expand(a.base, a.facts)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(Planned{
		Version: RecordVersion, Study: a.study, Facts: a.facts, Trials: trials, Base: a.base,
		Deadline: a.study.Deadline.After(evening, time.UTC), Expect: a.study.Expect, Seed: a.seed,
	})
}

// kill is the death of the tuner and its return: the night is read again from
// what is on disk.
func (a *actor) kill() {
	a.t.Helper()
	data, err := json.Marshal(a.records)
	if err != nil {
		a.t.Fatal(err)
	}
	var records []Record
	if err := json.Unmarshal(data, &records); err != nil {
		a.t.Fatal(err)
	}
	if a.n, err = Fold(records); err != nil {
		a.t.Fatal(err)
	}
	a.records = records
	a.write(Resumed{})
}

// settle performs what needs no script: notes, gates and waits. It stops at the
// first action about a launch, or at the end.
func (a *actor) settle() Action {
	a.t.Helper()
	for range 10_000 {
		switch do := a.n.Next(a.now).(type) {
		case Note:
			a.write(do.Body)
		case Settle:
			a.now = a.now.Add(a.study.Expect.Release)
			a.write(Settled{After: do.After, OK: true})
		case Wait:
			if !do.Until.After(a.now) {
				a.t.Fatalf("waits until %s at %s: %s", do.Until, a.now, do.Why)
			}
			a.now = do.Until
		default:
			return do
		}
	}
	a.t.Fatalf("the night does not get on: %#v", a.n.Next(a.now))
	return nil
}

// begin starts the launch that is asked for.
func (a *actor) begin() (Launch, error) {
	do, ok := a.settle().(Launch)
	if !ok {
		return do, fmt.Errorf("no launch is asked for, but %#v", a.n.Next(a.now))
	}
	if a.n.openLaunch() == nil {
		a.write(do.Intended)
		a.write(Launched{Launch: do.Intended.Launch, ID: fmt.Sprint("launch-", do.Intended.Launch), Command: []string{"python"}})
	}
	return do, nil
}

// ready starts it and lets it be ready.
func (a *actor) ready() (Launch, error) {
	do, err := a.begin()
	if err != nil {
		return do, err
	}
	r := Ready{Launch: do.Intended.Launch, Took: a.study.Expect.Start, Patches: map[string]string{}}
	patches, _ := a.n.trials[do.Slot.Trial].Patches()
	for _, name := range patches {
		r.Patches[name] = "effective"
	}
	a.now = a.now.Add(r.Took)
	a.write(r)
	if ask, is := a.n.Next(a.now).(Ask); is {
		a.write(a.answers(ask))
	}
	return do, nil
}

// result is what the client reports.
type result func(p Point) Measured

// flat is a client that reports one rate whatever the concurrency.
func flat(rate float64) result {
	return func(p Point) Measured {
		return Measured{Result: bench.Result{Format: bench.Serving, Requested: 100, Completed: 100, Metrics: map[string]float64{
			"output_throughput": rate, "p99_ttft_ms": 1000 / rate, "mean_tpot_ms": 1000 / rate,
		}}}
	}
}

// serve goes through a whole launch.
func (a *actor) serve(r result) error {
	do, err := a.ready()
	if err != nil {
		return err
	}
	return a.measureAll(do.Intended.Launch, r)
}

// measureAll measures what is asked for, and ends or hands over.
func (a *actor) measureAll(launch int, r result) error {
	for range 1000 {
		switch do := a.n.Next(a.now).(type) {
		case Note:
			a.write(do.Body)
		case Ask:
			a.write(a.answers(do))
		case Flush:
			a.write(Flushed{Launch: launch, OK: !a.stale})
		case Measure:
			if !do.Until.After(a.now) {
				return fmt.Errorf("a measurement has to be over at %s, now it is %s", do.Until, a.now)
			}
			a.write(Measuring{launch, do.Point})
			if again := a.n.Next(a.now); again != Action(do) {
				return fmt.Errorf("a run that goes on is asked for otherwise: %#v, then %#v", do, again)
			}
			m := r(do.Point)
			m.Launch, m.Point, m.Began, m.Took = launch, do.Point, a.now, a.study.Expect.Load
			a.now = a.now.Add(m.Took)
			a.write(m)
		case Stop:
			e := Ended{Launch: launch, Outcome: "stopped", Text: do.Why, Cause: do.Cause}
			if do.Cause != "" {
				e.Outcome = "unhealthy"
			}
			a.write(e)
			return nil
		case HandOver:
			a.write(Serving{Launch: launch, Trial: do.Trial})
			return nil
		default:
			return fmt.Errorf("it asks for %#v while launch %d runs", do, launch)
		}
	}
	return fmt.Errorf("launch %d is measured for ever", launch)
}

// answers are those of a sound server, but for what the line says: differ=N of 24
// are others, each has length=N tokens, eval=N is the status of the study's command.
func (a *actor) answers(do Ask) Answered {
	s := answers.Sample{Figures: answers.Figures{Answers: 24, Asked: 256, Tokens: 24 * 200, Variety: 0.7}, Sums: make([]string, 24)}
	for i := range int(number(a.said["differ"])) {
		s.Sums[i] = "another"
	}
	if v := a.said["length"]; v != "" {
		s.Tokens = 24 * int(number(v))
	}
	r := Answered{Launch: do.Launch, Sample: &s}
	if do.Eval {
		r.Eval = &Evaluated{Status: int(number(a.said["eval"])), Line: "recall 0.5"}
	}
	return r
}

// crash ends the launch that is asked for by its own fault: before it is ready,
// or at its first point.
func (a *actor) crash(e Ended, underLoad bool) error {
	start := a.begin
	if underLoad {
		start = a.ready
	}
	do, err := start()
	if err != nil {
		return err
	}
	e.Launch = do.Intended.Launch
	if underLoad {
		m, ok := a.n.Next(a.now).(Measure)
		if !ok {
			return fmt.Errorf("no measurement is asked for, but %#v", a.n.Next(a.now))
		}
		a.write(Measuring{m.Launch, m.Point})
	}
	a.now = a.now.Add(2 * time.Minute)
	a.write(e)
	return nil
}

// told are the bodies of the records since the present line began.
func (a *actor) told() []Body {
	var all []Body
	for _, r := range a.records[a.since:] {
		all = append(all, r.Body)
	}
	return all
}

// act performs one verb of a script.
func (a *actor) act(verb string, args []string) error {
	a.since = len(a.records)
	set, rest := options(args)
	a.said = set
	switch verb {
	case "study":
		return a.configure(set)
	case "axis":
		axis := Axis{Monotone: set["monotone"], Category: set["category"]}
		for _, v := range rest[1:] {
			axis.Values = append(axis.Values, scriptValue(v))
		}
		a.study.Axes[rest[0]] = axis
	case "base":
		a.base[rest[0]] = scriptValue(rest[1])
	case "load":
		l := Load{Name: rest[0], Bench: bench.Serving}
		for _, c := range rest[1:] {
			n, _ := strconv.Atoi(c)
			l.Concurrency = append(l.Concurrency, n)
		}
		if len(a.study.Loads[0].Concurrency) == 1 { // the one that is there without being asked for
			a.study.Loads = nil
		}
		a.study.Loads = append(a.study.Loads, l)
	case "constraint":
		a.study.Constraints = append(a.study.Constraints, Constraint{Metric: rest[0], Max: number(set["max"]), Min: number(set["min"])})
	case "probe":
		a.study.Probe = Probe{Concurrency: 64, Input: 100_000}
	case "plan":
		a.facts.Driver = set["driver"]
		a.plan()
	case "ok":
		if set["took"] != "" { // of the start
			expected := a.study.Expect.Start
			defer func() { a.study.Expect.Start = expected }()
			a.study.Expect.Start, _ = time.ParseDuration(set["took"])
		}
		if set["point"] != "" { // what each point takes
			expected := a.study.Expect.Load
			defer func() { a.study.Expect.Load = expected }()
			a.study.Expect.Load, _ = time.ParseDuration(set["point"])
		}
		return a.serve(a.client(set))
	case "all": // every launch up to a stage, or to the end
		for range 200 {
			do, ok := a.settle().(Launch)
			if !ok || string(do.Slot.Stage) == set["until"] {
				return nil
			}
			if err := a.serve(a.client(set)); err != nil {
				return err
			}
		}
	case "fail":
		e := Ended{Outcome: "crashed", Cause: rest[0], Phase: set["phase"], Text: set["text"], Held: set["held"], Unkillable: set["unkillable"] != ""}
		if set["outcome"] != "" {
			e.Outcome = set["outcome"]
		}
		if rest[0] == "-" {
			e.Cause = ""
		}
		return a.crash(e, set["under"] == "load")
	case "start": // and nothing more
		_, err := a.begin()
		return err
	case "up":
		do, err := a.begin()
		if err != nil {
			return err
		}
		r := Ready{Launch: do.Intended.Launch, Took: a.study.Expect.Start, Checked: set["checked"]}
		if set["differs"] != "" {
			r.Differs = []string{set["differs"]}
		}
		if set["patch"] != "" {
			r.Patches = map[string]string{rest[0]: set["patch"]}
		}
		a.write(r)
		return a.measureAll(do.Intended.Launch, a.client(set))
	case "kill":
		a.kill()
	case "until": // nothing happens until then
		at, err := time.Parse("15:04", rest[0])
		if err != nil {
			return err
		}
		for a.now.Format("15:04") != at.Format("15:04") {
			a.now = a.now.Add(time.Minute)
		}
	case "no-flush":
		a.stale = true
	case "stop":
		a.write(StopAsked{By: "a person"})
	case "shut":
		if _, ok := a.n.Next(a.now).(Settle); !ok {
			return fmt.Errorf("no gate is asked for, but %#v", a.n.Next(a.now))
		}
		a.write(Settled{After: len(a.n.launches), Problem: rest[0], Hardware: set["hardware"]})
	case "next": // nothing happens
	default:
		return fmt.Errorf("unknown verb %q", verb)
	}
	return nil
}

// client is the bench client of a script's line.
func (a *actor) client(set map[string]string) result {
	return func(p Point) Measured {
		rate := 100.0
		if v := set["rate"]; v != "" {
			rate = number(v)
		}
		if l := a.n.openLaunch(); l != nil {
			if v := set[a.n.trials[l.Slot.Trial].Name]; v != "" {
				rate = number(v)
			}
		}
		if v := set[p.String()]; v != "" {
			rate = number(v)
		}
		m := flat(rate)(p)
		m.Window.Throttled = number(set["throttled"])
		m.Window.Hardware = set["xid"]
		if v := set["ttft"]; v != "" {
			m.Result.Metrics["p99_ttft_ms"] = number(v)
		}
		if p.Soak {
			m.Problem = set["lost"]
			m.Window.Throttled += number(set["hot"])
			return m
		}
		if l := a.n.openLaunch(); l != nil && l.flushed != nil {
			m.Window.Emptied = true
			m.Window.Opening = &Opening{Computed: 100 - int(number(set["cached"])), Cached: int(number(set["cached"]))}
		}
		if v := set["completed"]; v != "" {
			m.Result.Completed = int(number(v))
		}
		m.Problem = set["problem"]
		if p.Probe && set["lost"] != "" {
			m.Problem = set["lost"]
		}
		return m
	}
}

// configure sets keys of the study.
func (a *actor) configure(set map[string]string) error {
	for key, v := range set {
		n := int(number(v))
		d, _ := time.ParseDuration(v)
		switch key {
		case "search":
			a.study.Search = v
		case "repeats":
			a.study.Repeats = n
		case "finalists":
			a.study.Finalists = n
		case "promote":
			a.study.Promote = v
		case "caches":
			a.study.Caches = v
		case "every":
			a.study.Baseline.Every = n
		case "within":
			a.study.Baseline.Within = d
		case "deadline":
			a.study.Deadline = Deadline{In: d}
		case "prune":
			a.study.Prune = v == "true"
		case "seed":
			a.seed = int64(n)
		case "environment":
			a.study.Limits.Environment = n
		case "eval":
			a.study.Quality.Eval = []string{v}
		case "soak":
			a.study.Gate.Soak = d
		case "on":
			a.study.Objective.Load = v
		case "metric":
			a.study.Objective.Metric = v
		default:
			return fmt.Errorf("unknown key %q", key)
		}
	}
	return nil
}

func number(text string) float64 {
	x, _ := strconv.ParseFloat(text, 64)
	return x
}

func scriptValue(text string) Value {
	switch text {
	case "on":
		return Value{Kind: Alone}
	case "off":
		return Value{Kind: Absent}
	case "none":
		return Value{}
	}
	return TextValue(text)
}

// options takes key=value words apart from the others. A key may be in quotes.
func options(args []string) (set map[string]string, rest []string) {
	set = map[string]string{}
	for _, arg := range args {
		if i := strings.LastIndexByte(arg, '='); i > 0 {
			set[arg[:i]] = arg[i+1:]
		} else {
			rest = append(rest, arg)
		}
	}
	return set, rest
}
