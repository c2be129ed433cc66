package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"sglaunch/internal/tune"
)

// timeline is the picture of the night: a bar for each launch, coloured by what
// became of it, above them the baseline's figure and how warm the GPUs were.
type timeline struct {
	Width, Height int
	Hours         []tick
	Bars          []bar
	Baseline      []dot // its figure over time
	Warm          []dot // temperature of the hottest GPU in each window
	Deadline      float64
}

type bar struct {
	X, Width float64
	Y        int
	Class    string // counts, baseline, failed, void, serving
	Title    string
}

type dot struct {
	X, Y  float64
	Title string
}

const (
	nightLeft  = 20
	nightRight = 960
	trialsY    = 96
	baselineY  = 72
)

// drawTimeline lays the launches out; ok is false where there is none.
func drawTimeline(s tune.Summary) (t timeline, ok bool) {
	until := s.Until
	if s.Deadline.After(until) {
		until = s.Deadline
	}
	whole := until.Sub(s.Began)
	if whole <= 0 || len(s.Launches) == 0 {
		return t, false
	}
	x := func(at time.Time) float64 {
		share := min(1, max(0, at.Sub(s.Began).Seconds()/whole.Seconds()))
		return tenths(nightLeft + share*(nightRight-nightLeft))
	}
	t = timeline{Width: plotWidth, Height: 150, Deadline: x(s.Deadline)}
	step := time.Hour
	for whole/step > 16 {
		step *= 2
	}
	for at := s.Began.Truncate(time.Hour).Add(step); at.Before(until); at = at.Add(step) {
		t.Hours = append(t.Hours, tick{x(at), clock(s, at)})
	}
	for _, l := range s.Launches {
		over := l.Over
		if over.IsZero() {
			over = until
			if s.Done == nil {
				over = s.Until
			}
		}
		b := bar{X: x(l.Began), Width: tenths(max(1, x(over)-x(l.Began)-1)), Y: trialsY, Class: class(l), Title: title(s, l)}
		if l.Trial.Baseline() {
			b.Y = baselineY
		}
		t.Bars = append(t.Bars, b)
	}
	t.Baseline, t.Warm = baselineDots(s, x), warmDots(s, x)
	return t, true
}

func tenths(x float64) float64 { return math.Round(10*x) / 10 }

// class is the colour of a bar.
func class(l tune.LaunchSummary) string {
	switch {
	case l.Counts && l.Trial.Baseline():
		return "baseline"
	case l.Counts:
		return "counts"
	case l.Serves:
		return "serving"
	case l.Ended != nil:
		if _, failed := tune.ClassOf(*l.Ended); failed {
			return "failed"
		}
	}
	return "void"
}

func title(s tune.Summary, l tune.LaunchSummary) string {
	text := clock(s, l.Began) + "  " + l.Trial.Name + ", " + string(l.Slot.Stage)
	if l.Ratio != 0 {
		text += ", " + percent(l.Ratio)
	}
	if l.Why != "" {
		text += ": " + l.Why
	}
	return text
}

// baselineDots are the baseline's figures.
func baselineDots(s tune.Summary, x func(time.Time) float64) (all []dot) {
	for _, l := range s.Launches {
		if l.Counts && l.Trial.Baseline() {
			all = append(all, dot{x(l.Over), l.Value, clock(s, l.Over) + "  " + figureText(l.Value)})
		}
	}
	return strip(all)
}

// warmDots are the temperatures of the windows.
func warmDots(s tune.Summary, x func(time.Time) float64) (all []dot) {
	for _, l := range s.Launches {
		for _, m := range l.Measured {
			if w := m.Window; w.Celsius > 0 {
				text := fmt.Sprintf("%s  %.0f °C, %.0f MHz, %.0f W", clock(s, m.Began), w.Celsius, w.ClockMHz, w.Watts)
				all = append(all, dot{x(m.Began), w.Celsius, text})
			}
		}
	}
	return strip(all)
}

// strip turns values into places between the top and the bottom of a strip; the
// lowest value is at its bottom.
func strip(all []dot) []dot {
	const top, bottom = 20, 60
	if len(all) == 0 {
		return nil
	}
	byY := func(a, b dot) int { return cmp.Compare(a.Y, b.Y) }
	low, high := slices.MinFunc(all, byY).Y, slices.MaxFunc(all, byY).Y
	for i := range all {
		share := 0.5
		if high > low {
			share = (all[i].Y - low) / (high - low)
		}
		all[i].Y = tenths(bottom - share*(bottom-top))
	}
	return all
}
