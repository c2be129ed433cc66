package tune

import (
	"fmt"
	"math"
	"slices"
	"time"

	"sglaunch/internal/tune/bench"
	"sglaunch/internal/tune/stat"
)

// Summary is a night as a person reads it, while it runs and after.
type Summary struct {
	Study    Study
	Facts    Facts
	Began    time.Time
	Until    time.Time // of the newest record
	Deadline time.Time
	Verdict  *Verdict // nil until the trials are over
	Broke    *Broke
	Done     *Done
	Serving  *Serving
	Drifts   []Drifted
	Trials   []TrialSummary  // the baseline first, then in the order of the plan
	Launches []LaunchSummary // in order
	Labels   []string        // what has to be said beside every figure
}

// TrialSummary is what became of a trial.
type TrialSummary struct {
	Trial
	Launches int      // that count
	Ratio    float64  // to the baseline beside, mean before the fresh launches; 0 = unknown
	Finding  *Finding // of the fresh launches; nil where there were none
	Tactics  string   // its kernels were tuned otherwise than the baseline's; "" = not that anybody knows
	Quality  *Quality // of its answers; nil where none were asked for
	Skipped  *Skipped // nil where it is, or was, measured
}

// LaunchSummary is one launch.
type LaunchSummary struct {
	N        int
	ID       string // of the sglaunch launch
	Trial    Trial
	Slot     Slot
	Began    time.Time
	Ready    *Ready
	Over     time.Time // zero while it runs
	Counts   bool      // it has a score
	Serves   bool      // it was handed over
	Value    float64   // of the objective, in its own unit; 0 = none
	Ratio    float64   // to the baseline beside it; 0 = unknown
	Why      string    // it does not count
	Command  []string
	Found    *Caches // before it; nil: not known
	Measured []Measured
	Left     *LeftOut // points at which it was not measured; nil: none
	Ended    *Ended
}

// Summary is the night so far.
func (n *Night) Summary() Summary {
	s := Summary{
		Study: n.plan.Study, Facts: n.plan.Facts, Began: n.began, Until: n.latest, Deadline: n.plan.Deadline,
		Verdict: n.decided, Broke: n.broke, Done: n.done, Serving: n.serving, Drifts: n.drifts,
	}
	for _, t := range n.plan.Trials {
		s.Trials = append(s.Trials, n.trialSummary(t))
	}
	for _, l := range n.launches {
		s.Launches = append(s.Launches, n.launchSummary(l))
	}
	s.Labels = n.labels()
	return s
}

func (n *Night) trialSummary(t Trial) TrialSummary {
	s := TrialSummary{Trial: t, Launches: len(n.samples(t.ID, Screen, Narrow, Confirm)), Tactics: n.tactics(t), Quality: n.quality(t)}
	if skipped, out := n.skipped(t.ID); out {
		s.Skipped = &skipped
	}
	sum, count := 0.0, 0
	for _, l := range n.samples(t.ID, Screen, Narrow) {
		if b, ok := n.beside(l.launch); ok && !t.Baseline() {
			sum, count = sum+l.score-b, count+1
		}
	}
	if count > 0 {
		s.Ratio = math.Exp(sum / float64(count))
	}
	if n.decided != nil {
		if i := slices.IndexFunc(n.decided.Findings, func(f Finding) bool { return f.Trial == t.ID }); i >= 0 {
			s.Finding = &n.decided.Findings[i]
		}
	}
	return s
}

func (n *Night) launchSummary(l *launch) LaunchSummary {
	o := n.outcome(l)
	s := LaunchSummary{
		N: l.Launch, Trial: n.trials[l.Slot.Trial], Slot: l.Slot, Began: l.at, Ready: l.ready, Over: l.endedAt,
		Measured: l.measured, Left: l.left, Ended: l.ended, Why: o.why, Counts: o.status == scored && l.Slot.Stage != Morning && n.current(l),
	}
	s.Serves = n.serving != nil && n.serving.Launch == l.Launch
	if l.launched != nil {
		s.ID, s.Command, s.Found = l.launched.ID, l.launched.Command, l.launched.Caches
	}
	if s.Trial.ID == "" {
		s.Trial = Trial{ID: l.Slot.Trial, Name: l.Slot.Trial}
	}
	if o.status == scored && !n.current(l) {
		s.Why = "something that it depends on changed since"
	}
	if !s.Counts {
		return s
	}
	s.Value = n.value(o.score)
	if b, ok := n.beside(l); ok {
		s.Ratio = math.Exp(o.score - b)
	}
	return s
}

// value is a score in the unit of the objective.
func (n *Night) value(score float64) float64 {
	if bench.HigherIsBetter(n.plan.Study.Objective.Metric) {
		return math.Exp(score)
	}
	return math.Exp(-score)
}

// twoModes says of a trial whose launches gather at two places that they do: a
// mean of both is neither. "" = they do not, or are too few to tell.
func (n *Night) twoModes(t Trial) string {
	low, high, ok := stat.Modes(scores(n.samples(t.ID, Screen, Narrow, Confirm)))
	if !ok || mean(high)-mean(low) < math.Log1p(n.plan.Study.MinimumEffect) {
		return ""
	}
	return fmt.Sprintf("two modes: of %d launches of %s, %d are at %.4g and %d at %.4g %s, and none between: something happens now and then",
		len(low)+len(high), t.Name, len(low), n.value(mean(low)), len(high), n.value(mean(high)), n.plan.Study.Objective.Metric)
}

func mean(list []float64) (m float64) {
	for _, x := range list {
		m += x / float64(len(list))
	}
	return m
}

// labels are what has to be said beside every figure of the night.
func (n *Night) labels() (labels []string) {
	if n.plan.Study.Test {
		labels = append(labels, "a test: the answers may be made up, nothing of it may serve")
	}
	if why := n.plan.Study.Unreal(n.command(), n.plan.Trials); why != "" {
		labels = append(labels, "synthetic prompts: "+why)
	}
	if n.decided != nil && n.decided.Trend != 0 {
		labels = append(labels, "drift: the baseline itself changed by "+signed(math.Exp(n.decided.Trend))+" over the night")
	}
	for _, t := range n.plan.Trials {
		if text := n.twoModes(t); text != "" {
			labels = append(labels, text)
		}
	}
	if n.serving != nil && n.decided != nil && n.decided.Winner != "" && n.serving.Trial != n.decided.Winner && n.plan.Study.Promote == PromoteServe {
		labels = append(labels, "degraded: the winner was to serve, and does not")
	}
	return labels
}

// command is what the newest launch of the baseline was started with.
func (n *Night) command() []string {
	for _, l := range slices.Backward(n.of[BaselineID]) {
		if l.launched != nil {
			return l.launched.Command
		}
	}
	return nil
}
