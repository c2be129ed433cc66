package conduct

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
)

// eyes watch the GPUs all night, once a second, and never touch them: clocks
// and limits are recorded, not set. One goroutine takes what the source tells.
type eyes struct {
	source  gpu.Source
	devices func(gpu.Sample) []gpu.GPU // those of the server
	gone    chan struct{}              // closed when the source told its last

	mu     sync.Mutex
	absent string // why there is no driver to ask
	xids   []gpu.Xid
	window *window // what is being watched; nil: nothing
}

func openEyes(source gpu.Source, devices func(gpu.Sample) []gpu.GPU) *eyes {
	e := &eyes{source: source, devices: devices, gone: make(chan struct{})}
	go func() {
		defer close(e.gone)
		for news := range source.Events() {
			e.take(news)
		}
	}()
	return e
}

// close ends the source. A sampler that would not end is left alone: it may
// hang in the driver.
func (e *eyes) close() {
	_ = e.source.Close()
	<-e.gone
}

func (e *eyes) take(news gpu.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch n := news.(type) {
	case gpu.Sample:
		if e.window != nil {
			e.window.add(n, e.devices(n))
		}
	case gpu.Xid:
		e.xids = append(e.xids[max(0, len(e.xids)-xidsMost):], n)
	case gpu.SourceAbsent:
		e.absent = n.Reason
	}
}

const (
	xidsMost      = 100
	snapshotLimit = 20 * time.Second
)

// look asks for the GPUs as they are now, with who is on them. It is false
// where nobody can be asked.
func (e *eyes) look(ctx context.Context) ([]gpu.GPU, bool) {
	ctx, cancel := context.WithTimeout(ctx, snapshotLimit)
	defer cancel()
	s, err := e.source.Snapshot(ctx)
	if err != nil || len(s.GPUs) == 0 {
		return nil, false
	}
	return e.devices(s), true
}

// xid names the newest Xid since a time; "" where there was none.
func (e *eyes) xid(since time.Time) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range slices.Backward(e.xids) {
		if x.At.After(since) {
			return fmt.Sprintf("Xid %d on GPU %d", x.Code, x.Index)
		}
	}
	return ""
}

// watch begins a window; its samples are kept in a file.
func (e *eyes) watch(path string) *window {
	w := &window{began: time.Now()}
	w.file, _ = os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, statedir.FileMode) // the record alone is worth less than the figures
	e.mu.Lock()
	e.window = w
	e.mu.Unlock()
	return w
}

// done ends a window.
func (e *eyes) done(w *window) tune.Window {
	e.mu.Lock()
	e.window = nil
	e.mu.Unlock()
	seen := w.sum(time.Now())
	if x := e.xid(w.began); x != "" {
		seen.Hardware = x
	}
	if w.file != nil {
		_ = w.file.Close()
	}
	return seen
}

// window gathers what was seen beside one run of a bench client.
type window struct {
	began time.Time
	file  *os.File

	at      []time.Time // of the samples
	slowed  map[string]int
	capped  map[string]int
	heat    []heat
	clock   mean
	celsius mean
	watts   mean
	limit   mean
	slowest gpu.Reading // P-state of a GPU that works
	counted []counted
	first   []gpu.GPU
	last    []gpu.GPU
}

// Bits of GPU.Throttle: slowed by heat, brake or a hardware fault, and by the
// power limit, which is usual under load.
const (
	slowedBits = 0x08 | 0x20 | 0x40 | 0x80
	cappedBits = 0x04
)

// add takes a sample; the caller holds the lock of the eyes.
func (w *window) add(s gpu.Sample, ours []gpu.GPU) {
	if len(ours) == 0 || s.At.Before(w.began) { // one that was late speaks of the time before
		return
	}
	if w.slowed == nil {
		w.slowed, w.capped, w.first = map[string]int{}, map[string]int{}, ours
	}
	w.at, w.last = append(w.at, s.At), ours
	hottest, watts, limit := int64(0), int64(0), int64(0)
	for _, g := range ours {
		if g.Throttle.Known && g.Throttle.Value&slowedBits != 0 {
			w.slowed[g.UUID]++
		}
		if g.Throttle.Known && g.Throttle.Value&cappedBits != 0 {
			w.capped[g.UUID]++
		}
		if g.SMClock.Known {
			w.clock.add(float64(g.SMClock.Value))
		}
		if g.PState.Known && !g.Util.Is(0) && !w.slowest.Above(g.PState.Value) {
			w.slowest = g.PState
		}
		hottest, watts, limit = max(hottest, g.TempC.Value), watts+g.PowerMW.Value, limit+g.LimitMW.Value
	}
	w.heat = append(w.heat, heatOf(s.At, ours))
	w.celsius.add(float64(hottest))
	w.watts.add(float64(watts) / 1000)
	w.limit.add(float64(limit) / 1000)
	w.count(s.At, ours)
	if w.file != nil {
		s.GPUs = ours
		_ = json.NewEncoder(w.file).Encode(s) // see watch
	}
}

// gapMost is how long two samples may lie apart to speak for the time between.
const gapMost = 3 * time.Second

func (w *window) sum(now time.Time) tune.Window {
	seen := tune.Window{
		Throttled: share(w.slowed, len(w.at)), PowerCap: share(w.capped, len(w.at)),
		ClockMHz: w.clock.value(), Celsius: w.celsius.value(), Watts: w.watts.value(), LimitWatts: w.limit.value(),
		Hardware: worn(w.first, w.last),
	}
	if w.slowest.Known {
		seen.PState = fmt.Sprintf("P%d", w.slowest.Value)
	}
	if length := now.Sub(w.began); length > 0 && len(w.at) > 0 {
		var covered time.Duration
		before := w.began
		for _, at := range append(slices.Clone(w.at), now) {
			if gap := at.Sub(before); gap > 0 && gap <= gapMost {
				covered += gap
			}
			before = at
		}
		seen.Sampled = min(1, float64(covered)/float64(length))
	}
	return seen
}

// share is that of the worst GPU.
func share(counts map[string]int, of int) (worst float64) {
	for _, n := range counts {
		worst = max(worst, float64(n)/float64(of))
	}
	return worst
}

// worn names what has grown between two looks that only grows when hardware
// fails; "" where nothing has.
func worn(before, after []gpu.GPU) string {
	for _, now := range after {
		i := slices.IndexFunc(before, func(g gpu.GPU) bool { return g.UUID == now.UUID })
		if i < 0 {
			continue
		}
		then := before[i]
		for _, c := range []struct {
			what      string
			then, now gpu.Reading
		}{
			{"uncorrected memory errors", then.ECCUncorrected, now.ECCUncorrected},
			{"remapped rows", then.Remapped.Uncorrected, now.Remapped.Uncorrected},
		} {
			if c.then.Known && c.now.Above(c.then.Value) {
				return fmt.Sprintf("GPU %d: %s went from %d to %d", now.Index, c.what, c.then.Value, c.now.Value)
			}
		}
		if trouble := now.Trouble(); trouble != "" && then.Trouble() == "" {
			return fmt.Sprintf("GPU %d: %s", now.Index, trouble)
		}
	}
	return ""
}

// mean of what was added; 0 where nothing was.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

func (m mean) value() float64 {
	if m.n == 0 {
		return 0
	}
	return m.sum / float64(m.n)
}
