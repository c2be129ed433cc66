package report

import (
	"fmt"
	"math"

	"sglaunch/internal/tune"
)

// forest is the picture of the comparison: one row a trial, its ratio to the
// baseline, and of finalists the interval.
type forest struct {
	Width, Height int
	One           float64 // x of "as good as the baseline"
	Minimum       float64 // x of the smallest effect that counts
	Ticks         []tick
	Rows          []forestRow
}

type tick struct {
	X    float64
	Text string
}

type forestRow struct {
	Y         int
	Name      string
	Mid       float64
	Low, High float64 // x; equal to Mid where there is no interval
	Interval  bool
	Won       bool
	Text      string
}

// Sizes of the pictures, in pixels.
const (
	rowHeight = 22
	plotLeft  = 330
	plotRight = 860
	plotWidth = 980
	maxRows   = 60 // the best; the table has them all
	maxName   = 48
)

// drawForest lays the rows out; ok is false where nothing can be drawn.
func drawForest(s tune.Summary) (f forest, ok bool) {
	trials := compared(s)
	if len(trials) > maxRows {
		trials = trials[:maxRows]
	}
	low, high := 1.0, 1+s.Study.MinimumEffect
	for _, t := range trials {
		a, mid, b := span(t)
		low, high = min(low, a, mid), max(high, b, mid)
	}
	low, high = math.Max(low, 0.2), math.Min(high, 5)
	x := scale(low-0.02*(high-low), high+0.02*(high-low))
	f = forest{Width: plotWidth, Height: rowHeight*len(trials) + 40, One: x(1), Minimum: x(1 + s.Study.MinimumEffect)}
	for i, t := range trials {
		a, mid, b := span(t)
		row := forestRow{Y: 20 + i*rowHeight, Name: shorten(t.Name), Mid: x(mid), Low: x(a), High: x(b), Interval: a < b, Text: percent(mid)}
		row.Won = s.Verdict != nil && s.Verdict.Winner == t.ID
		f.Rows = append(f.Rows, row)
	}
	for i := range 5 {
		at := low + (high-low)*float64(i)/4
		f.Ticks = append(f.Ticks, tick{x(at), fmt.Sprintf("%+.1f %%", 100*(at-1))})
	}
	return f, len(trials) > 0
}

// span is what is drawn of a trial: its interval, or the figure alone.
func span(t tune.TrialSummary) (low, mid, high float64) {
	if t.Finding != nil && t.Finding.Ratio.Known() {
		r := t.Finding.Ratio
		return r.Low, r.Mid, r.High
	}
	return t.Ratio, t.Ratio, t.Ratio
}

// scale maps a range of values on the plot; what lies outside is at its edge.
func scale(low, high float64) func(float64) float64 {
	return func(v float64) float64 {
		share := (v - low) / (high - low)
		return math.Round(plotLeft + math.Min(1, math.Max(0, share))*(plotRight-plotLeft))
	}
}

func shorten(name string) string {
	letters := []rune(name)
	if len(letters) <= maxName {
		return name
	}
	return string(letters[:maxName-1]) + "…"
}
