package tune

import (
	"fmt"
	"time"

	"sglaunch/internal/probe/answers"
)

// Before a launch is measured it answers fixed prompts, greedily. The answers of
// a trial are held against those of the baseline's launches so far: what is
// clearly worse is fast and wrong. The baseline itself is never to blame for its
// answers, for it is what serves anyway.

// outputCorrupt is the cause of the vocabulary for answers that are wrong.
const outputCorrupt = "output_corrupt"

// ask is what a launch that is ready has to answer before it is measured; more is
// false where it need not.
func (n *Night) ask(l *launch) (a Ask, more bool) {
	s := n.plan.Study
	serves := l.Slot.Stage == Morning && l.Slot.Trial == BaselineID
	a = Ask{Launch: l.Launch, Eval: l.Slot.Stage == Screen && len(s.Quality.Eval) > 0}
	if l.answered != nil || serves || s.Test || s.Quality.Answers == 0 && !a.Eval {
		return Ask{}, false
	}
	limit := s.Quality.Limit
	if a.Eval {
		limit += s.Quality.EvalLimit
	}
	a.Until = earlier(l.at.Add(l.ready.Took+limit), n.loadsEnd(l))
	return a, true
}

// wrong says by what the answers of a launch are clearly worse than those of the
// baseline before it; "" = by nothing.
func (n *Night) wrong(l *launch) string {
	if l.answered == nil || l.Slot.Trial == BaselineID {
		return ""
	}
	if s := l.answered.Sample; s != nil {
		if why := s.Worse(n.baselineSamples(l.Launch)); why != "" {
			return "its answers are worse than the baseline's: " + why
		}
	}
	if e := l.answered.Eval; e != nil && e.Status > 0 && n.baselineEvaluates(l.Launch) {
		return "eval ended with status " + fmt.Sprint(e.Status) + because(e.Line)
	}
	return ""
}

// baselineSamples are the answers of the baseline's launches before a launch.
func (n *Night) baselineSamples(before int) (all []answers.Sample) {
	for _, l := range n.of[BaselineID] {
		if l.Launch < before && n.current(l) && l.answered != nil && l.answered.Sample != nil {
			all = append(all, *l.answered.Sample)
		}
	}
	return all
}

// baselineEvaluates tells whether the newest verdict of eval on the baseline
// before a launch was good. One that finds fault with the baseline proves nothing.
func (n *Night) baselineEvaluates(before int) (good bool) {
	for _, l := range n.of[BaselineID] {
		if l.Launch < before && n.current(l) && l.answered != nil && l.answered.Eval != nil {
			good = l.answered.Eval.Status == 0
		}
	}
	return good
}

// Quality is what is known of a trial's answers: for the report.
type Quality struct {
	answers.Likeness
	Answers int        // that were compared; 0: none were
	Figures string     // of the baseline: what a ratio stands against
	Eval    *Evaluated // the newest; nil: there was none
	Undone  string     // why the newest answers could not be looked at
}

// quality is what the newest answers of a trial are like, beside those of all
// launches of the baseline.
func (n *Night) quality(t Trial) *Quality {
	var q *Quality
	for _, l := range n.of[t.ID] {
		if l.answered == nil || !n.current(l) {
			continue
		}
		if q == nil {
			q = &Quality{}
		}
		if e := l.answered.Eval; e != nil {
			q.Eval = e
		}
		q.Undone = l.answered.Undone
		if s := l.answered.Sample; s != nil {
			q.Likeness, q.Answers = s.Compare(n.baselineSamples(len(n.launches)+1)), s.Answers
		}
	}
	if q != nil && t.Baseline() {
		n.selfLike(q)
	}
	return q
}

// selfLike is the baseline's own line: how its launches agree among each other.
func (n *Night) selfLike(q *Quality) {
	all := n.baselineSamples(len(n.launches) + 1)
	q.Same, q.Unlike = q.Self, false
	if f := answers.Pool(all); f.Answers > 0 {
		q.Figures = fmt.Sprintf("%.0f tokens an answer, %.0f %% of the tokens in a stretch differ", f.Length(), 100*f.Variety)
	}
}

// answering is how long the answers of a launch take, by what this night has seen.
func (n *Night) answering() time.Duration { return stretch(n.pace.asked) }
