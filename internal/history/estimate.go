package history

import (
	"fmt"
	"math"
	"time"

	"sglaunch/phases"
)

// Progress is a counter of a phase: 41 of 83 shards. The zero Progress is
// unknown.
type Progress struct {
	Done, Total int64
}

// share is how much is done, from 0 to 1; ok is false where that says nothing
// about the pace.
func (p Progress) share() (share float64, ok bool) {
	if p.Total <= 0 || p.Done <= 0 || p.Done > p.Total {
		return 0, false
	}
	return float64(p.Done) / float64(p.Total), true
}

// Estimate is how long something still takes.
type Estimate struct {
	Left      time.Duration // most likely; 0 and Overdue where it takes longer than it usually does
	Low, High time.Duration // where Left usually lies
	Usual     Range         // of the whole, from its beginning; zero where only the pace is known
	Samples   int           // starts behind Usual
	Basis     string        // for a person, where the starts are not quite like this one
	Overdue   bool          // Left is unknown: it already takes longer than usual
}

// paceShare is the part of the work after which its pace alone is believed,
// where history is silent; the first shards are not like the others.
const paceShare = 0.1

// Estimate tells how long a phase still takes that has run for elapsed. ok is
// false where neither history nor the pace says anything.
func (p Past) Estimate(phase phases.Phase, progress Progress, elapsed time.Duration) (e Estimate, ok bool) {
	seconds, basis := p.took(phase)
	share, paced := progress.share()
	if len(seconds) == 0 {
		if !paced || share < paceShare {
			return Estimate{}, false
		}
		left := max(pace(elapsed, share)-elapsed, 0)
		return Estimate{Left: left, Low: left, High: left}, true
	}
	e = Estimate{Usual: spread(seconds), Samples: len(seconds), Basis: basis}
	e.Left = remaining(e.Usual.Mid, elapsed, share)
	// A slow pace refutes the fast starts first.
	low, high := remaining(e.Usual.Low, elapsed, share), remaining(e.Usual.High, elapsed, share)
	e.Low, e.High = min(low, e.Left, high), max(low, e.Left, high)
	e.Overdue = !paced && elapsed > e.Usual.High
	return e, true
}

// Ready tells how long it still takes until the server is ready. ok is false
// where that is unknown.
func (p Past) Ready(phase phases.Phase, progress Progress, elapsed time.Duration) (e Estimate, ok bool) {
	if phase >= phases.Ready {
		return Estimate{}, false
	}
	now, ok := p.Estimate(phase, progress, elapsed)
	seconds, basis := p.rest(phase)
	if !ok || len(seconds) == 0 {
		return Estimate{}, false
	}
	rest := spread(seconds)
	e = Estimate{Left: now.Left + rest.Mid, Low: now.Low + rest.Low, High: now.High + rest.High, Samples: len(seconds), Basis: basis}
	if whole, _ := p.whole(); len(whole) > 0 {
		e.Usual = spread(whole)
	}
	if now.Overdue {
		e.Overdue, e.Left, e.Low, e.High = true, 0, 0, 0
	}
	return e, true
}

// whole are the times from spawn to ready.
func (p Past) whole() (seconds []float64, basis string) {
	return p.comparable(
		func(c Caches) bool { return c == p.key.Caches },
		func(s start) (time.Duration, bool) { return s.between(phases.Starting, phases.Ready), s.ready })
}

// pace is how long the whole takes if it goes on as it went.
func pace(elapsed time.Duration, share float64) time.Duration {
	return toDuration(elapsed.Seconds() / share)
}

// remaining weighs what history says of the whole against the pace. The pace
// counts the more, the more is done and the more of the usual time is gone; it
// alone counts once that time is over. The mean is geometric, because starts
// are slow and fast by factors.
func remaining(usual, elapsed time.Duration, share float64) time.Duration {
	whole := usual
	if share > 0 {
		weight := 1.0
		if usual > elapsed {
			weight = share / (share + (1-elapsed.Seconds()/usual.Seconds())/8)
		}
		whole = toDuration(math.Pow(usual.Seconds(), 1-weight) * math.Pow(pace(elapsed, share).Seconds(), weight))
	}
	return max(whole-elapsed, 0)
}

// trivial is what nobody waits for knowingly.
const trivial = 2 * time.Second

// Trivial reports whether the whole is over before a word about it was read.
func (e Estimate) Trivial() bool { return max(e.Usual.High, e.High) < trivial }

// left is the rest in words; a rest of "0 s" would look like a mistake.
func (e Estimate) left() string {
	if e.Left < time.Second {
		return "nearly done"
	}
	return "about " + about(e.Left) + " left"
}

// String says it as a person would: "about 6 min left, usually 14 to 17 min
// here".
func (e Estimate) String() string {
	usual := between(e.Usual.Low, e.Usual.High) + " here" + e.basis()
	switch {
	case e.Overdue:
		return "longer than usual, which is " + usual
	case e.Samples == 0:
		return e.left() + " at this pace"
	default:
		return e.left() + ", usually " + usual
	}
}

// UntilReady says an estimate that Ready gave: "ready in about 9 min, a start
// usually takes 14 to 17 min here".
func (e Estimate) UntilReady() string {
	usual := fmt.Sprintf("a start usually takes %s here%s", between(e.Usual.Low, e.Usual.High), e.basis())
	if e.Overdue {
		return "ready later than usual, " + usual
	}
	if e.Left < time.Second {
		return "ready at once, " + usual
	}
	return fmt.Sprintf("ready in about %s, %s", about(e.Left), usual)
}

// basis says where the starts are not quite like this one.
func (e Estimate) basis() string {
	if e.Basis == "" {
		return ""
	}
	return " (" + e.Basis + ")"
}

// between writes a range with one unit: "14 to 17 min".
func between(low, high time.Duration) string {
	l, h := about(low), about(high)
	if l == h {
		return h
	}
	if n := len(l) - len(unitOf(l)); unitOf(l) == unitOf(h) {
		l = l[:n]
	}
	return l + " to " + h
}

// unitOf is the unit at the end of what about writes, with its space.
func unitOf(text string) string {
	for i := range text {
		if text[i] == ' ' {
			return text[i:]
		}
	}
	return ""
}

// about rounds as a person would: no one trusts seconds in an hour.
func about(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", int(math.Round(d.Seconds())))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(math.Round(d.Minutes())))
	default:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
}
