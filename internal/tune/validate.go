package tune

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"sglaunch/internal/config"
	"sglaunch/internal/tune/bench"
	"sglaunch/patch"
)

// Validate reports every rule that the study breaks, as a config.Errors without
// files and lines: Read adds those.
func (s Study) Validate() error {
	v := validator{study: s}
	v.words()
	v.numbers()
	v.goals()
	v.axes()
	v.trials()
	v.loads()
	v.patches()
	v.size()
	if len(v.errors) == 0 {
		return nil
	}
	return v.errors
}

// validator collects broken rules. Its methods hold one plain sentence a rule.
type validator struct {
	study  Study
	errors config.Errors
}

func (v *validator) must(ok bool, key string, value any, problem string, args ...any) {
	if !ok {
		v.errors = append(v.errors, config.NewError(key, value, problem, args...))
	}
}

func (v *validator) oneof(key, word string, words ...string) {
	v.must(slices.Contains(words, word), key, word, "it must be one of %s", strings.Join(words, ", "))
}

var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

const nameRule = "it must be 1 to 64 letters, digits, dots, dashes and underscores, the first a letter or digit"

func (v *validator) words() {
	s := v.study
	v.must(name.MatchString(s.Name), "name", s.Name, nameRule)
	v.must(s.Base != "", "base", s.Base, "it must name the launch.toml that is varied")
	v.must(!s.Deadline.IsZero(), "deadline", nil, `it is missing: by when must a server serve? "06:30", or "8h"`)
	_, err := time.LoadLocation(s.Timezone)
	v.must(err == nil, "timezone", s.Timezone, `it must be a name such as "Europe/Berlin"`)
	v.oneof("search", s.Search, OneAtATime, Product, Halving)
	v.oneof("promote", s.Promote, PromoteAsk, PromoteServe)
	v.must(!s.Test || s.Promote == PromoteAsk, "promote", s.Promote, "it must be ask: the winner of a test must not serve")
	v.oneof("caches", s.Caches, CachesShared, CachesPerPatch, CachesCold)
	t := s.Takeover
	v.must(t.Launch == "" || len(t.Drain) > 0, "takeover.drain", nil,
		"it is missing: a server that serves is only ended where something takes it out of its router first; [\"true\"] where it has none")
	v.must(t.Launch != "" || len(t.Drain)+len(t.Return) == 0, "takeover.launch", t.Launch, "it must name the launch that is taken over")
}

func (v *validator) numbers() {
	s := v.study
	v.must(s.Repeats >= 2 && s.Repeats <= 50, "repeats", s.Repeats, "it must be from 2 to 50: one launch has no interval")
	v.must(s.Finalists >= 1 && s.Finalists <= 10, "finalists", s.Finalists, "it must be from 1 to 10")
	v.must(s.MinimumEffect >= 0 && s.MinimumEffect < 1, "minimum_effect", s.MinimumEffect, "it must be from 0 to below 1")
	v.must(s.Confidence >= 0.5 && s.Confidence <= 0.999, "confidence", s.Confidence, "it must be from 0.5 to 0.999")
	v.must(s.Baseline.Every >= 1 && s.Baseline.Every <= 100, "baseline.every", s.Baseline.Every, "it must be from 1 to 100")
	v.between("baseline.within", s.Baseline.Within, time.Second, 24*time.Hour)
	v.between("gate.wait", s.Gate.Wait, 0, 24*time.Hour)
	v.between("gate.soak", s.Gate.Soak, 0, 24*time.Hour)
	v.must(s.Gate.Temperature >= 0 && s.Gate.Temperature <= 120, "gate.temperature", s.Gate.Temperature, "it must be from 0 (any) to 120")
	q := s.Quality
	v.must(q.Answers >= 0 && q.Answers <= 1000, "quality.answers", q.Answers, "it must be from 0 (none) to 1000")
	v.must(q.Answers == 0 || q.Tokens >= 16 && q.Tokens <= 100_000, "quality.tokens", q.Tokens, "it must be from 16 to 100000")
	v.between("quality.limit", q.Limit, 0, 24*time.Hour)
	v.between("quality.eval_limit", q.EvalLimit, 0, 24*time.Hour)
	l := s.Limits
	v.between("limits.start", l.Start, time.Second, 24*time.Hour)
	v.between("limits.load", l.Load, time.Second, 24*time.Hour)
	v.between("limits.quiet", l.Quiet, time.Second, 24*time.Hour)
	v.share("limits.failed", l.Failed)
	v.share("limits.throttled", l.Throttled)
	v.share("limits.pressure", l.Pressure)
	v.must(l.Client > 0 && l.Client <= 1024, "limits.client", l.Client, "it must be above 0, in CPUs")
	v.share("limits.lag", l.Lag)
	v.must(l.Environment >= 1 && l.Environment <= 100, "limits.environment", l.Environment, "it must be from 1 to 100")
	v.between("expect.start", s.Expect.Start, 0, 24*time.Hour)
	v.between("expect.load", s.Expect.Load, 0, 24*time.Hour)
	v.between("expect.release", s.Expect.Release, 0, 24*time.Hour)
	if !s.Deadline.Set {
		v.must(s.Deadline.In <= 14*24*time.Hour, "deadline", s.Deadline, "it must be at most two weeks")
	}
}

func (v *validator) between(key string, d, least, most time.Duration) {
	v.must(d >= least && d <= most, key, d, "it must be from %s to %s", minutes(least), minutes(most))
}

func (v *validator) share(key string, x float64) {
	v.must(x >= 0 && x <= 1, key, x, "it must be from 0 to 1")
}

func (v *validator) goals() {
	o := v.study.Objective
	v.metric("objective.metric", o.Metric)
	v.load("objective.load", o.Load)
	for i, c := range v.study.Constraints {
		key := row("constraint", i)
		v.metric(key+".metric", c.Metric)
		v.load(key+".load", c.Load)
		v.must(c.Max != 0 || c.Min != 0, key, nil, "it bounds nothing: it needs max or min")
		v.must(c.Max == 0 || c.Max >= c.Min, key+".max", c.Max, "it must not be below min, %v", c.Min)
	}
}

func (v *validator) metric(key, metric string) {
	if bench.Known(metric) {
		return
	}
	e := config.NewError(key, metric, "there is no such metric")
	if near := config.Nearest(metric, bench.Metrics()); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	} else {
		e.Hint = "known are " + strings.Join(bench.Metrics(), ", ")
	}
	v.errors = append(v.errors, e)
}

func (v *validator) load(key, load string) {
	known := load == "" || slices.ContainsFunc(v.study.Loads, func(l Load) bool { return l.Name == load })
	v.must(known, key, load, "there is no [[load]] of this name")
}

var variable = regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*$`)

// axis checks the name of what is varied.
func (v *validator) axis(key, axis string) {
	ok := axis == PatchesAxis || variable.MatchString(axis) || strings.HasPrefix(axis, "--") && len(axis) > 2 && !strings.ContainsAny(axis, "= \t\n\x00")
	v.must(ok, key, nil, `it must be a flag ("--name"), a variable ("$NAME") or %q`, PatchesAxis)
}

func (v *validator) axes() {
	for _, axis := range slices.Sorted(maps.Keys(v.study.Axes)) {
		a, key := v.study.Axes[axis], config.Key("axis", axis)
		v.axis(key, axis)
		v.must(len(a.Values) >= 1 && len(a.Values) <= 100, key+".values", nil, "it must hold from 1 to 100 values")
		v.must(a.Monotone == "" || slices.Contains(monotones, a.Monotone), key+".monotone", a.Monotone, "it must be one of %s", strings.Join(monotones, ", "))
		v.must(a.Category == "" || slices.Contains(categories, a.Category), key+".category", a.Category, "it must be one of %s", strings.Join(categories, ", "))
		v.must(a.Risk >= 0 && a.Risk <= 9, key+".risk", a.Risk, "it must be from 0 to 9")
		seen := map[Value]bool{}
		for i, value := range a.Values {
			v.must(!seen[value], row(key+".values", i), value.String(), "it stands here twice")
			seen[value] = true
			_, number := value.Number()
			v.must(number || a.Monotone == "" || a.Monotone == NoOrder, row(key+".values", i), value.String(), "it must be a number, as the axis is %s", a.Monotone)
			v.value(row(key+".values", i), axis, value)
		}
	}
}

// value checks what kinds of values an axis takes.
func (v *validator) value(key, axis string, value Value) {
	switch {
	case axis == PatchesAxis:
		v.must(value.Kind == Text, key, value.String(), `it must be text: names with spaces between them, "" for no patch`)
	case strings.HasPrefix(axis, "$"):
		v.must(value.Kind != Alone, key, value.String(), `it must be text, a number, or false for an unset variable`)
	}
}

func (v *validator) trials() {
	names := map[string]bool{}
	for i, t := range v.study.Trials {
		key := row("trial", i)
		v.must(len(t.Set) > 0, key+".set", nil, "it is empty: the baseline is launched anyway")
		v.must(t.Name != BaselineID && (t.Name == "" || !names[t.Name]), key+".name", t.Name, "this name is taken")
		v.must(t.Risk >= 0 && t.Risk <= 9, key+".risk", t.Risk, "it must be from 0 to 9")
		names[t.Name] = true
		v.settings(key+".set", t.Set)
	}
	for i, e := range v.study.Excludes {
		v.must(len(e.Set) > 0, row("exclude", i)+".set", nil, "it is empty: it would exclude every trial")
		v.settings(row("exclude", i)+".set", e.Set)
	}
}

func (v *validator) settings(key string, set map[string]Value) {
	for _, axis := range slices.Sorted(maps.Keys(set)) {
		v.axis(config.Key(key, axis), axis)
		v.value(config.Key(key, axis), axis, set[axis])
	}
}

func (v *validator) loads() {
	v.must(len(v.study.Loads) > 0, "load", nil, "there is none: nothing would be measured")
	seen := map[string]bool{}
	for i, l := range v.study.Loads {
		key := row("load", i)
		v.must(name.MatchString(l.Name), key+".name", l.Name, nameRule)
		v.must(!seen[l.Name], key+".name", l.Name, "this name is taken")
		seen[l.Name] = true
		v.oneof(key+".bench", l.Bench, bench.Kinds()...)
		v.must(l.Bench != bench.Own || len(l.Command) > 0, key+".command", nil, "it is missing: only the known clients have a usual command")
		v.must(l.Requests >= 0 && l.Requests <= 1_000_000, key+".requests", l.Requests, "it must be from 0 to 1000000")
		v.must(l.Input >= 0 && l.Output >= 0 && l.Input <= 100_000_000 && l.Output <= 100_000_000, key, nil, "its input and output must be from 0 to 100000000 tokens")
		if l.CPUs != "" && l.CPUs != AnyCPU {
			_, err := ParseCPUs(l.CPUs)
			v.must(err == nil, key+".cpus", l.CPUs, "%v", err)
		}
		v.between(key+".limit", l.Limit, 0, 24*time.Hour)
		v.must(len(l.Concurrency) >= 1 && len(l.Concurrency) <= 50, key+".concurrency", l.Concurrency, "it must hold from 1 to 50 numbers, as in [1, 8, 32]")
		for j, c := range l.Concurrency {
			v.must(c >= 1 && c <= 100_000, row(key+".concurrency", j), c, "it must be from 1 to 100000")
			v.must(j == 0 || c > l.Concurrency[j-1], row(key+".concurrency", j), c, "it must be more than the one before it")
		}
	}
	p := v.study.Probe
	v.load("probe.load", p.Load)
	v.must(p.Concurrency >= 0 && p.Concurrency <= 100_000 && p.Input >= 0 && p.Output >= 0 && p.Requests >= 0, "probe", nil, "its numbers must not be negative, nor its concurrency above 100000")
}

func (v *validator) patches() {
	for i, p := range v.study.Patches {
		if err := p.Validate(); err != nil {
			v.errors = append(v.errors, config.NewError(row("patch", i), nil, "%s", err))
		}
		_, shipped := patch.Shipped(p.Name)
		v.must(!shipped, row("patch", i)+".name", p.Name, "a shipped patch has this name")
		v.must(!slices.Contains(v.study.PatchNames()[:i], p.Label()), row("patch", i), p.Label(), "this name is taken")
	}
}

// PatchNames are the names of the study's own patches, in its order.
func (s Study) PatchNames() []string {
	names := make([]string, len(s.Patches))
	for i, p := range s.Patches {
		names[i] = p.Label()
	}
	return names
}

// size refuses studies that no night holds, and those that vary nothing.
func (v *validator) size() {
	if len(v.errors) > 0 {
		return
	}
	trials, err := v.study.Expand(nil, Facts{})
	switch {
	case err != nil:
		v.must(false, "search", v.study.Search, "more than %d trials: take values from the axes, or search one-at-a-time", maxTrials)
	case len(trials) < 2:
		v.must(false, "axis", nil, "nothing is varied: it needs [axis.\"--flag\"] values, or a [[trial]]")
	}
}

func row(key string, i int) string { return fmt.Sprintf("%s[%d]", key, i) }
