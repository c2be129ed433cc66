package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sglaunch/internal/tune"
)

// pareto is the picture of what a user gets against what a GPU gives: one line a
// trial and load, one point a concurrency, its whiskers from the lowest to the
// highest of the launches that count.
type pareto struct {
	Width, Height int
	Lines         []paretoLine
	X, Y          []tick
	Left, Bottom  float64
}

type paretoLine struct {
	Class  string // baseline, won, mark
	Points string // of the polyline
	Dots   []paretoDot
}

type paretoDot struct {
	X, Y     float64
	Low, Top float64 // of the upright whisker
	West     float64 // of the level one
	East     float64
	Front    bool // no other is better for both
	Title    string
}

// Places of the picture, in pixels.
const (
	paretoLeft   = 70
	paretoRight  = 950
	paretoTop    = 15
	paretoBottom = 290
	paretoTrials = 6 // beside the baseline, the best
)

// spot is one point of a trial over its launches, in its own units.
type spot struct {
	trial       tune.TrialSummary
	point       tune.Point
	user, gpu   float64    // tokens a second, means
	users, gpus [2]float64 // the lowest and the highest
	launches    int
}

// drawPareto lays the points out; ok is false where no run gave both figures.
func drawPareto(s tune.Summary) (p pareto, ok bool) {
	trials := append([]tune.TrialSummary{s.Trials[0]}, compared(s)...)
	trials = trials[:min(len(trials), paretoTrials+1)]
	var all []spot
	for _, t := range trials {
		all = append(all, spotsOf(s, t)...)
	}
	if len(all) == 0 {
		return p, false
	}
	x, xs := axis(all, paretoLeft, paretoRight, func(a spot) [2]float64 { return a.users })
	y, ys := axis(all, paretoBottom, paretoTop, func(a spot) [2]float64 { return a.gpus })
	p = pareto{Width: plotWidth, Height: paretoBottom + 40, X: xs, Y: ys, Left: paretoLeft, Bottom: paretoBottom}
	for _, t := range trials {
		for _, load := range s.Study.Loads {
			if line, drawn := lineOf(s, t, load.Name, all, x, y); drawn {
				p.Lines = append(p.Lines, line)
			}
		}
	}
	return p, true
}

// spotsOf are the points of a trial that give both figures.
func spotsOf(s tune.Summary, t tune.TrialSummary) (all []spot) {
	gpus := float64(max(1, len(s.Facts.GPUs)))
	for _, point := range s.Study.Points() {
		a := spot{point: point, trial: t}
		for _, l := range s.Launches {
			for _, m := range l.Measured {
				rate, tpot := m.Result.Metrics["output_throughput"], m.Result.Metrics["mean_tpot_ms"]
				if l.Trial.ID == t.ID && l.Counts && m.Point == point && rate > 0 && tpot > 0 && counts(s, m) {
					a.take(1000/tpot, rate/gpus)
				}
			}
		}
		if a.launches > 0 {
			a.user, a.gpu = a.user/float64(a.launches), a.gpu/float64(a.launches)
			all = append(all, a)
		}
	}
	return all
}

func (a *spot) take(user, gpu float64) {
	if a.launches == 0 {
		a.users, a.gpus = [2]float64{user, user}, [2]float64{gpu, gpu}
	}
	a.users = [2]float64{min(a.users[0], user), max(a.users[1], user)}
	a.gpus = [2]float64{min(a.gpus[0], gpu), max(a.gpus[1], gpu)}
	a.user, a.gpu, a.launches = a.user+user, a.gpu+gpu, a.launches+1
}

func lineOf(s tune.Summary, t tune.TrialSummary, load string, all []spot, x, y func(float64) float64) (line paretoLine, ok bool) {
	line.Class = "mark"
	switch {
	case t.Baseline():
		line.Class = "baseline"
	case s.Verdict != nil && s.Verdict.Winner == t.ID:
		line.Class = "won"
	}
	var points []string
	for _, a := range all {
		if a.trial.ID != t.ID || a.point.Load != load {
			continue
		}
		beaten := slices.ContainsFunc(all, func(b spot) bool { return b.user > a.user && b.gpu > a.gpu })
		points = append(points, fmt.Sprintf("%g,%g", x(a.user), y(a.gpu)))
		line.Dots = append(line.Dots, paretoDot{
			X: x(a.user), Y: y(a.gpu), Low: y(a.gpus[0]), Top: y(a.gpus[1]), West: x(a.users[0]), East: x(a.users[1]), Front: !beaten,
			Title: fmt.Sprintf("%s, %s: %.4g tokens/s a user, %.4g a GPU, %d launches", t.Name, a.point, a.user, a.gpu, a.launches),
		})
	}
	line.Points = strings.Join(points, " ")
	return line, len(points) > 0
}

// axis maps figures between two pixels, from zero on, with four round ticks.
func axis(all []spot, from, to float64, of func(spot) [2]float64) (at func(float64) float64, ticks []tick) {
	most := 0.0
	for _, a := range all {
		most = max(most, of(a)[1])
	}
	step := math.Pow(10, math.Floor(math.Log10(most/2)))
	for most/step > 5 {
		step *= 2
	}
	most = step * math.Ceil(most/step)
	at = func(v float64) float64 { return tenths(from + v/most*(to-from)) }
	for v := step; v <= most; v += step {
		ticks = append(ticks, tick{at(v), fmt.Sprintf("%g", v)})
	}
	return at, ticks
}
