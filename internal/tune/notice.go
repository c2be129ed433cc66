package tune

import (
	"fmt"
	"math"

	"sglaunch/internal/tune/stat"
)

// notice is what the newest records show and nobody has said yet.
func (n *Night) notice() (b Body, ok bool) {
	if n.decided != nil {
		return nil, false
	}
	if n.broke == nil {
		if b, ok := n.breaker(); ok {
			return b, true
		}
	}
	if s, ok := n.drop(); ok {
		return s, true
	}
	if d, ok := n.drift(); ok {
		return d, true
	}
	return nil, false
}

// breaker is what ends the trials of a night before its time.
func (n *Night) breaker() (b Broke, ok bool) {
	if n.asked != nil {
		return Broke{"asked", "stopped by " + n.asked.By}, true
	}
	for _, l := range n.launches {
		if b, ok := fatal(l); ok {
			return b, true
		}
	}
	for _, s := range n.settles {
		if s.Hardware != "" {
			return Broke{"hardware", s.Hardware}, true
		}
	}
	if row, text := n.environmentFailures(); row >= n.plan.Study.Limits.Environment {
		return Broke{"environment", fmt.Sprintf("%d failures in a row that no trial is to blame for, the last: %s", row, text)}, true
	}
	if text, twice := n.baselineFails(); twice {
		return Broke{"baseline", "the baseline itself fails: " + text}, true
	}
	return Broke{}, false
}

// fatal is what a launch shows of a machine that no further launch may touch.
func fatal(l *launch) (b Broke, ok bool) {
	for _, m := range l.measured {
		if m.Window.Hardware != "" {
			return Broke{"hardware", m.Window.Hardware}, true
		}
	}
	if l.ended == nil {
		return Broke{}, false
	}
	c, failed := ClassOf(*l.ended)
	switch {
	case l.ended.Unkillable:
		return Broke{"unkillable", fmt.Sprintf("a process of launch %d would not go", l.Launch)}, true
	case l.ended.Held != "":
		return Broke{"memory", fmt.Sprintf("GPU memory did not come back after launch %d: %s", l.Launch, l.ended.Held)}, true
	case failed && c.Hardware:
		return Broke{"hardware", describe(*l.ended)}, true
	}
	return Broke{}, false
}

// environmentFailures counts, back from now, what failed without a trial's
// fault: starts, and gates that stayed shut.
func (n *Night) environmentFailures() (row int, text string) {
	count := func(problem string) {
		if row++; text == "" {
			text = problem
		}
	}
	for i := len(n.settles) - 1; i >= 0; i-- {
		if n.settles[i].OK {
			break
		}
		count(n.settles[i].Problem)
	}
	for i := len(n.launches) - 1; i >= 0; i-- {
		l := n.launches[i]
		if l.interrupted {
			continue
		}
		if l.ended == nil {
			break
		}
		c, failed := ClassOf(*l.ended)
		if !failed || !c.Environment {
			break
		}
		count(describe(*l.ended))
	}
	return row, text
}

// baselineFails tells that the last two launches of the baseline failed, or were
// refused, by their own fault.
func (n *Night) baselineFails() (text string, twice bool) {
	row := 0
	for i := len(n.launches) - 1; i >= 0 && row < 2; i-- {
		l := n.launches[i]
		if l.Slot.Trial != BaselineID || l.interrupted || l.ended == nil {
			continue
		}
		o := n.outcome(l)
		if c, ok := ClassOf(*l.ended); ok && c.Environment || o.status != failed && o.status != refused {
			break
		}
		if row++; text == "" {
			text = o.why
		}
	}
	return text, row >= 2
}

// drop is the next trial that need not be tried, or tried again.
func (n *Night) drop() (s Skipped, ok bool) {
	for _, l := range n.launches {
		if _, out := n.skipped(l.Slot.Trial); out || l.Slot.Trial == BaselineID || !n.current(l) {
			continue
		}
		if s, ok := n.givesUp(l); ok {
			return s, true
		}
	}
	for _, t := range n.plan.Trials[1:] {
		if s, out := n.skipped(t.ID); out && s.Evidence > 0 {
			if s, ok := n.learnt(n.launches[s.Evidence-1]); ok {
				return s, true
			}
		}
	}
	return Skipped{}, false
}

// Rules of Skipped that are no lesson.
const (
	ruleFailed       = "failed"       // by its own fault, as often as it is worth trying
	ruleRefused      = "refused"      // it ran, and is no candidate
	ruleInconclusive = "inconclusive" // no launch of it could be counted
	ruleInterrupted  = "quarantined"  // the tuner died twice while it ran
	ruleEnvironment  = "environment"  // by no fault of its own
)

// Tried tells whether the trial was launched: it was given up then.
func (s Skipped) Tried() bool {
	switch s.Rule {
	case ruleFailed, ruleRefused, ruleInconclusive, ruleInterrupted, ruleEnvironment:
		return true
	}
	return false
}

// inconclusives is how many launches of a trial in a row may come to nothing.
const inconclusives = 3

// givesUp tells whether a launch was the last that its trial is worth.
func (n *Night) givesUp(l *launch) (s Skipped, ok bool) {
	o := n.outcome(l)
	s = Skipped{Trial: l.Slot.Trial, Evidence: l.Launch, Text: o.why}
	switch o.status {
	case refused:
		s.Rule = ruleRefused
		return s, true
	case failed:
		c, _ := ClassOf(*l.ended)
		if s.Rule = ruleFailed; c.Environment {
			s.Rule = ruleEnvironment
		}
		return s, n.before(l, func(e *launch, o2 outcome) bool { return o2.status == failed && sameClass(e, c) }) > n.retries(l, c)
	case interrupted:
		s.Rule, s.Text = ruleInterrupted, "the tuner was interrupted twice while it ran"
		return s, n.before(l, func(_ *launch, o outcome) bool { return o.status == interrupted }) >= 2
	case invalid:
		s.Rule = ruleInconclusive
		return s, n.before(l, func(e *launch, o outcome) bool { return o.status == invalid && !e.void }) >= inconclusives
	}
	return s, false
}

// many is how many trials one failure may take with it. One that would take more
// has to be seen twice.
const many = 3

// retries is how often a trial is worth trying again after a failure.
func (n *Night) retries(l *launch, c Class) int {
	taken := 0
	for _, t := range n.plan.Trials[1:] {
		if _, out := n.skipped(t.ID); out || c.teaches.orders == nil || len(n.samples(t.ID, Screen, Narrow, Confirm)) > 0 {
			continue
		}
		if _, yes := n.taught(n.trials[l.Slot.Trial], c, *l.ended, t); yes {
			taken++
		}
	}
	if taken > many {
		return max(c.Retries, 1)
	}
	return c.Retries
}

func sameClass(l *launch, c Class) bool {
	other, ok := ClassOf(*l.ended)
	return ok && other.Name == c.Name
}

// before counts the launches of the same trial, up to this one and this one
// included, of which is is true.
func (n *Night) before(l *launch, is func(*launch, outcome) bool) (count int) {
	for _, e := range n.of[l.Slot.Trial] {
		if e.Launch <= l.Launch && n.current(e) && is(e, n.outcome(e)) {
			count++
		}
	}
	return count
}

// learnt is the next trial that a failure shows to fail too.
func (n *Night) learnt(l *launch) (s Skipped, ok bool) {
	if l.ended == nil {
		return Skipped{}, false
	}
	c, failed := ClassOf(*l.ended)
	if !failed {
		return Skipped{}, false
	}
	blamed := n.trials[l.Slot.Trial]
	for _, t := range n.plan.Trials[1:] {
		if _, out := n.skipped(t.ID); out || len(n.samples(t.ID, Screen, Narrow, Confirm)) > 0 {
			continue
		}
		if text, yes := n.taught(blamed, c, *l.ended, t); yes {
			text = fmt.Sprintf("%s, and launch %d (%s) failed: %s", text, l.Launch, blamed.Name, describe(*l.ended))
			return Skipped{Trial: t.ID, Evidence: l.Launch, Rule: c.teaches.rule, Text: text}, true
		}
	}
	return Skipped{}, false
}

// drift is the next step between neighbouring launches of the baseline that is
// larger than the effects that are looked for, and than its usual scatter.
func (n *Night) drift() (d Drifted, ok bool) {
	all := n.samples(BaselineID, Screen, Narrow)
	for i := 1; i < len(all); i++ {
		from, to := all[i-1], all[i]
		if change := to.score - from.score; math.Abs(change) > n.driftLimit(all[:i]) && !n.told(to) {
			return Drifted{From: from.Launch, To: to.Launch, Change: change}, true
		}
	}
	return Drifted{}, false
}

// told tells that a drift up to a launch of the baseline was noted.
func (n *Night) told(to sample) bool {
	for _, d := range n.drifts {
		if d.To == to.Launch {
			return true
		}
	}
	return false
}

// driftLimit is what two launches of the baseline may differ by.
func (n *Night) driftLimit(earlier []sample) float64 {
	return max(math.Log1p(n.plan.Study.MinimumEffect), n.apart(earlier))
}

// apart is what two launches of one configuration may differ by for no reason:
// three times what such a difference usually is, by launches of the baseline.
// Until that is known, launches are taken to scatter by half the minimum effect.
func (n *Night) apart(baseline []sample) float64 {
	noise, ok := stat.Stepwise(scores(baseline))
	if !ok {
		noise = math.Log1p(n.plan.Study.MinimumEffect) / 2
	}
	return 3 * math.Sqrt2 * noise
}

func scores(all []sample) []float64 {
	list := make([]float64, len(all))
	for i, s := range all {
		list[i] = s.score
	}
	return list
}
