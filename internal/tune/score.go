package tune

import (
	"fmt"
	"math"

	"sglaunch/internal/tune/bench"
)

// status is what a launch amounts to.
type status int

const (
	running     status = iota // it is open
	scored                    // it has a score
	failed                    // it ended by itself, or in a way that blames something: see ClassOf
	refused                   // it ran, and is no candidate: a constraint, an unproven patch, failed requests
	invalid                   // it says nothing: to be repeated
	interrupted               // the tuner died
	continued                 // its cache could not be emptied: another launch measures the rest
)

// outcome is a launch's status, its score and the reason where it has none.
// The score is the logarithm of the objective, turned so that more is better.
type outcome struct {
	status status
	score  float64
	why    string
}

// outcome is what a launch amounts to, by all that is recorded of it.
func (n *Night) outcome(l *launch) outcome {
	if l.open() {
		return outcome{status: running}
	}
	if l.judged == nil {
		o := n.assess(l)
		l.judged = &o
	}
	return *l.judged
}

// assess judges a launch that is over.
func (n *Night) assess(l *launch) outcome {
	switch {
	case l.interrupted:
		return outcome{status: interrupted, why: "the tuner was interrupted"}
	case l.void:
		return outcome{status: invalid, why: "the baseline drifted meanwhile"}
	}
	if _, ok := ClassOf(*l.ended); ok {
		return outcome{status: failed, why: describe(*l.ended)}
	}
	if l.ready == nil {
		return outcome{status: invalid, why: "it was stopped before it was ready"}
	}
	if why := n.disqualified(l); why != "" {
		return outcome{status: refused, why: why}
	}
	switch next, more := n.nextPoint(l); {
	case more && l.unflushed():
		return outcome{status: continued, why: "its prefix cache could not be emptied: " + next.String() + " is measured on a fresh server"}
	case more:
		return outcome{status: invalid, why: "it was stopped before " + next.String()}
	}
	if why := n.toppled(l); why != "" {
		return outcome{status: refused, why: why}
	}
	return n.score(l)
}

// toppled is how the worst case for memory failed; "" = it was stood, or not
// asked for.
func (n *Night) toppled(l *launch) (why string) {
	for _, m := range l.runs() {
		if m.Point.Probe {
			why = n.plan.Study.Broken(m)
		}
	}
	if why != "" {
		why = "it does not stand the probe: " + why
	}
	return why
}

// disqualified is what was proven against a launch that is ready: it is not what
// the trial says, or it answers wrongly.
func (n *Night) disqualified(l *launch) string {
	r := l.ready
	if r.Checked == "failed" {
		return "the output check failed"
	}
	t := n.trials[l.Slot.Trial]
	if len(r.Differs) > 0 && !t.Baseline() {
		return "the server runs otherwise than asked: " + r.Differs[0]
	}
	patches, _ := t.Patches()
	for _, name := range patches {
		switch effect, told := r.Patches[name]; {
		case told && effect != "effective" && effect != "not_expected":
			return fmt.Sprintf("patch %s is %s", name, effect)
		case !told:
			return fmt.Sprintf("patch %s is not proven", name)
		}
	}
	return ""
}

// score is the objective over a launch whose points are all measured.
func (n *Night) score(l *launch) outcome {
	s := n.plan.Study
	sum, loads, doubt := 0.0, 0, ""
	for _, load := range s.Loads {
		if !s.Objective.judges(load.Name) {
			continue
		}
		value, why, sure := n.scoreLoad(l, load.Name)
		switch {
		case why != "" && sure:
			return outcome{status: refused, why: why}
		case why != "":
			doubt = why
		}
		sum, loads = sum+value, loads+1
	}
	if doubt != "" {
		return outcome{status: invalid, why: doubt}
	}
	if why := n.unkept(l); why != "" {
		return outcome{status: refused, why: why}
	}
	return outcome{status: scored, score: sum / float64(loads)}
}

// scoreLoad is the objective on one load: a rate at its best point, a latency as
// the mean of all. sure is false where another launch may do better.
func (n *Night) scoreLoad(l *launch, load string) (value float64, why string, sure bool) {
	metric := n.plan.Study.Objective.Metric
	rate := bench.HigherIsBetter(metric)
	best, sum, count := math.Inf(-1), 0.0, 0
	for _, m := range n.valid(l, load) {
		x, ok := m.Result.Metrics[metric]
		if !ok || x <= 0 {
			return 0, fmt.Sprintf("%s gives no %s", m.Point, metric), true
		}
		if rate && n.breaks(m) != "" {
			continue
		}
		best = max(best, math.Log(x))
		sum, count = sum-math.Log(x), count+1
	}
	switch {
	case count == 0 || !rate && count < len(n.pointsOf(load)):
		return 0, n.reason(l, load), n.certain(l, load)
	case rate:
		return best, "", true
	}
	return sum / float64(count), "", true
}

// unkept is a constraint that a launch breaks where it has to hold everywhere:
// with a latency as objective there is no best point to choose.
func (n *Night) unkept(l *launch) string {
	s := n.plan.Study
	for _, load := range s.Loads {
		judged := bench.HigherIsBetter(s.Objective.Metric) && s.Objective.judges(load.Name)
		for _, m := range n.valid(l, load.Name) {
			if why := n.breaks(m); why != "" && !judged {
				return why
			}
		}
	}
	return ""
}

// valid are the runs of a load that count, one a point, in order.
func (n *Night) valid(l *launch, load string) []Measured {
	var runs []Measured
	for _, p := range n.pointsOf(load) {
		if m, ok := n.run(l, p); ok {
			runs = append(runs, m)
		}
	}
	return runs
}

// run is the newest run at a point that counts.
func (n *Night) run(l *launch, p Point) (m Measured, ok bool) {
	for _, m := range l.runs() {
		if m.Point == p && n.plan.Study.Broken(m) == "" && len(n.plan.Study.Invalid(m)) == 0 {
			return m, true
		}
	}
	return Measured{}, false
}

func (n *Night) pointsOf(load string) []Point {
	var points []Point
	for _, p := range n.plan.Study.Points() {
		if p.Load == load {
			points = append(points, p)
		}
	}
	return points
}

// breaks is the constraint that a run breaks; "" = none. A metric that the
// client did not give is not kept.
func (n *Night) breaks(m Measured) string {
	for _, c := range n.plan.Study.Constraints {
		if c.Load != "" && c.Load != m.Point.Load {
			continue
		}
		switch x, ok := m.Result.Metrics[c.Metric]; {
		case !ok:
			return fmt.Sprintf("%s gives no %s", m.Point, c.Metric)
		case c.Max != 0 && x > c.Max:
			return fmt.Sprintf("%s of %s is %.4g, above %.4g", c.Metric, m.Point, x, c.Max)
		case c.Min != 0 && x < c.Min:
			return fmt.Sprintf("%s of %s is %.4g, below %.4g", c.Metric, m.Point, x, c.Min)
		}
	}
	return ""
}

// reason says why a load has no score, by its last point that has none.
func (n *Night) reason(l *launch, load string) string {
	why := "no point of " + load + " counts"
	for _, m := range l.runs() {
		if m.Point.Load != load || m.Point.Soak {
			continue
		}
		if text := n.plan.Study.Broken(m); text != "" {
			why = m.Point.String() + ": " + text
		} else if invalid := n.plan.Study.Invalid(m); len(invalid) > 0 {
			why = m.Point.String() + ": " + invalid[0]
		} else if text := n.breaks(m); text != "" {
			why = text
		}
	}
	return why
}

// certain tells that a load without a score has none because of the server:
// no run of it was spoilt by something else.
func (n *Night) certain(l *launch, load string) bool {
	for _, m := range l.runs() {
		if m.Point.Load == load && !m.Point.Soak && n.plan.Study.Broken(m) == "" && len(n.plan.Study.Invalid(m)) > 0 {
			return false
		}
	}
	return true
}

// describe says in one line how a launch failed.
func describe(e Ended) string {
	what := e.Cause
	if what == "" {
		what = e.Outcome
	}
	if e.Phase != "" {
		what += " in " + e.Phase
	}
	return what + because(e.Text)
}
