package tune

import (
	"fmt"
	"math"
	"strings"
	"time"

	"sglaunch/internal/visible"
)

// Text is the plan for a person: trials in their order, the arithmetic, and what
// is wrong with it.
func (p Plan) Text() string {
	var b strings.Builder
	line := func(text string, args ...any) { b.WriteString(visible.Line(fmt.Sprintf(text, args...)) + "\n") }
	one := p.Expect.Launch(len(p.Study.Points()))
	line("%s: %d trials and the baseline, %s, by %s", p.Study.Name, len(p.Trials)-1, p.Study.Search, p.Deadline.Format("Mon 15:04 MST"))
	for i, t := range p.Trials[1:] {
		line("  %3d  %s", i+1, t.Name)
	}
	line("a launch takes %s: start %s, %d points of %s, release %s", minutes(one),
		minutes(p.Expect.Start), len(p.Study.Points()), minutes(p.Expect.Load), minutes(p.Expect.Release))
	if _, soak := p.Study.SoakPoint(); soak {
		line("before the first one is measured, the load warms the GPUs up for %s at most", minutes(p.Study.Gate.Soak))
	}
	if q := p.Study.Quality; q.Answers > 0 && !p.Study.Test {
		line("before it is measured each launch answers %d prompts with %d tokens at most, held against the baseline's", q.Answers, q.Tokens)
	}
	line("%d launches fit, with the morning's: %d of %d trials are measured, then the best (%d at most) are launched %d times more, each time beside the baseline",
		len(p.Launches), p.Arms, len(p.Trials)-1, p.Study.Finalists, p.Pairs)
	line("a server serves at about %s", p.Ends.Format("15:04"))
	if !math.IsInf(p.Smallest, 0) {
		line("a gain of %.1f %% or more shows in 4 of 5 such nights, where launches scatter by %.1f %%%s; the least that counts is %.3g %%",
			100*(p.Smallest-1), 100*p.Noise, assumed(p.Assumed), 100*p.Study.MinimumEffect)
	}
	for _, w := range p.Warnings {
		line("note: %s", w)
	}
	for _, problem := range p.Problems {
		line("refused: %s", problem)
	}
	return b.String()
}

func assumed(is bool) string {
	if is {
		return " (assumed)"
	}
	return ""
}

// minutes writes a duration as a person would say it: "1h30m", "6m", "20s".
func minutes(d time.Duration) string {
	if d >= 10*time.Minute {
		d = d.Round(time.Minute)
	} else {
		d = d.Round(time.Second)
	}
	text := d.String()
	if text = strings.TrimSuffix(text, "m0s"); text != d.String() {
		text += "m"
	}
	if short := strings.TrimSuffix(text, "h0m"); short != text {
		text = short + "h"
	}
	return text
}
