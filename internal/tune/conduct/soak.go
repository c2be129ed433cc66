package conduct

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/tune"
)

// A rested machine is faster than the same machine an hour later: its GPUs are
// cool and their clocks high. So the load runs, unmeasured, until temperature,
// clocks and throttling are what they were half a minute before. Nothing is set.

const (
	steadyFor   = time.Minute // what is compared: its second half with its first
	steadyHeat  = 1.0         // Celsius, of the hottest GPU
	steadyClock = 0.01        // of the clock, as a share
	steadySlow  = 0.1         // of the samples in which a GPU throttles, as a share
	soakTick    = time.Second
)

// errSteady ends the load: the GPUs are as warm as it makes them.
var errSteady = errors.New("the GPUs are warm")

// soak lets the load run until the GPUs are as warm as it makes them, or until
// the time for it is over.
func (at *attempt) soak(ctx context.Context, a tune.Measure) (tune.Measured, *tune.Ended) {
	serving, cancel := at.server.Serving(ctx)
	defer cancel()
	m := tune.Measured{Launch: at.n, Point: a.Point, Began: time.Now()}
	w := at.eyes.watch(at.freeName(pointName(a.Point)) + "-gpus.jsonl")
	var note string
	note, m.Problem = at.eyes.warmUp(serving, w, a.Until, func(ctx context.Context) string {
		return at.client(ctx, a, at.freeName(pointName(a.Point))).Run(ctx).Problem
	})
	m.Took, m.Window = time.Since(m.Began), at.eyes.done(w)
	if ended := at.cut(ctx, serving); ended != nil {
		return tune.Measured{}, ended
	}
	m.Result.Notes = []string{note}
	return m, nil
}

// warmUp calls run, again and again, until the window is steady, the time is over
// or run reports a problem. It says how it ended.
func (e *eyes) warmUp(ctx context.Context, w *window, until time.Time, run func(context.Context) string) (note, problem string) {
	warm, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late, cancel := context.WithDeadline(warm, until)
	defer cancel()
	go func() {
		for began := time.Now(); late.Err() == nil; wait(late, soakTick) {
			switch steady, told := e.steady(w); {
			case steady:
				stop(errSteady)
			case !told && time.Since(began) > steadyFor:
				stop(errNoHeat)
			}
		}
	}()
	for late.Err() == nil && problem == "" {
		problem = run(late)
	}
	switch cause := context.Cause(late); {
	case errors.Is(cause, errSteady), errors.Is(cause, errNoHeat):
		return cause.Error() + e.now(w), ""
	case errors.Is(cause, context.DeadlineExceeded):
		return "the GPUs still change" + e.now(w), ""
	}
	return "it was cut short", problem
}

// errNoHeat ends the load: there is nothing to wait for.
var errNoHeat = errors.New("no GPU tells how warm it is")

// heat is how warm the GPUs are at a moment.
type heat struct {
	at      time.Time
	known   bool
	celsius float64 // of the hottest
	clock   float64 // MHz, mean
	slowed  float64 // 1: one throttles
}

func heatOf(at time.Time, gpus []gpu.GPU) heat {
	h := heat{at: at}
	var clock mean
	for _, g := range gpus {
		if g.TempC.Known {
			h.known, h.celsius = true, max(h.celsius, float64(g.TempC.Value))
		}
		if g.SMClock.Known {
			clock.add(float64(g.SMClock.Value))
		}
		if g.Throttle.Known && g.Throttle.Value&slowedBits != 0 {
			h.slowed = 1
		}
	}
	h.clock = clock.value()
	return h
}

// steady tells whether the GPUs changed no more in the newest part of a window;
// told is false where they do not say.
func (e *eyes) steady(w *window) (is, told bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return steady(w.heat)
}

func steady(all []heat) (is, told bool) {
	if len(all) == 0 || !all[len(all)-1].known {
		return false, false
	}
	newest := all[len(all)-1].at
	from := newest.Add(-steadyFor)
	if all[0].at.After(from) {
		return false, true
	}
	var celsius, clock, slowed [2]mean
	for _, h := range all {
		if h.at.Before(from) || !h.known {
			continue
		}
		half := 0
		if newest.Sub(h.at) < steadyFor/2 {
			half = 1
		}
		celsius[half].add(h.celsius)
		clock[half].add(h.clock)
		slowed[half].add(h.slowed)
	}
	near := func(m [2]mean, by float64) bool {
		return max(m[0].value(), m[1].value())-min(m[0].value(), m[1].value()) <= by
	}
	is = celsius[0].n > 0 && celsius[1].n > 0 &&
		near(celsius, steadyHeat) && near(clock, steadyClock*clock[1].value()) && near(slowed, steadySlow)
	return is, true
}

// now says how warm the GPUs are; "" where they do not tell.
func (e *eyes) now(w *window) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(w.heat) == 0 || !w.heat[len(w.heat)-1].known {
		return ""
	}
	h := w.heat[len(w.heat)-1]
	text := fmt.Sprintf(", %.0f °C", h.celsius)
	if h.clock > 0 {
		text += fmt.Sprintf(" at %.0f MHz", h.clock)
	}
	return text
}
