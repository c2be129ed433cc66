package conduct

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sglaunch/internal/gpu"
)

// The load runs until the GPUs are as warm as it makes them, a bounded time, and
// where they do not tell not for long.
func TestWarmUp(t *testing.T) {
	seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
	for _, c := range []struct {
		name        string
		feels       func(since time.Duration) gpu.GPU
		fails       bool
		note        string
		problem     string
		least, most time.Duration
	}{
		{name: "warms up in two minutes", note: "the GPUs are warm, 67 °C at 1846 MHz", least: 2*time.Minute + 30*time.Second, most: 3*time.Minute + 10*time.Second,
			feels: func(since time.Duration) gpu.GPU {
				t := min(27, 27*seconds(since)/120)
				return gpu.GPU{TempC: gpu.Read(40 + t), SMClock: gpu.Read(1980 - 5*t + t%2)}
			}},
		{name: "grows warmer all the time", note: "the GPUs still change", least: 5 * time.Minute, most: 5*time.Minute + time.Second,
			feels: func(since time.Duration) gpu.GPU { return gpu.GPU{TempC: gpu.Read(40 + seconds(since)/10)} }},
		{name: "a clock that falls", note: "the GPUs still change", least: 5 * time.Minute, most: 5*time.Minute + time.Second,
			feels: func(since time.Duration) gpu.GPU {
				return gpu.GPU{TempC: gpu.Read(60), SMClock: gpu.Read(1980 - seconds(since))}
			}},
		{name: "throttling that comes late", note: "the GPUs are warm", least: 100 * time.Second, most: 4 * time.Minute,
			feels: func(since time.Duration) gpu.GPU {
				g := gpu.GPU{TempC: gpu.Read(80), Throttle: gpu.Read(0)}
				if since > 50*time.Second {
					g.Throttle = gpu.Read(0x20)
				}
				return g
			}},
		{name: "a GPU that does not tell", note: "no GPU tells how warm it is", least: time.Minute, most: time.Minute + 5*time.Second,
			feels: func(time.Duration) gpu.GPU { return gpu.GPU{SMClock: gpu.Read(1980)} }},
		{name: "no GPU", note: "no GPU tells how warm it is", least: time.Minute, most: time.Minute + 5*time.Second},
		{name: "a client that fails", fails: true, problem: "it failed", most: 25 * time.Second,
			feels: func(time.Duration) gpu.GPU { return gpu.GPU{TempC: gpu.Read(40)} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := gpu.NewFake()
				e := openEyes(fake, func(s gpu.Sample) []gpu.GPU { return s.GPUs })
				began := time.Now()
				w := e.watch(filepath.Join(t.TempDir(), "gpus.jsonl"))
				ctx, over := context.WithCancel(t.Context())
				go func() {
					for c.feels != nil && ctx.Err() == nil {
						fake.Put(gpu.Sample{At: time.Now(), GPUs: []gpu.GPU{c.feels(time.Since(began))}})
						wait(ctx, time.Second)
					}
				}()
				runs := 0
				note, problem := e.warmUp(ctx, w, began.Add(5*time.Minute), func(ctx context.Context) string {
					runs++
					wait(ctx, 20*time.Second)
					if c.fails {
						return "it failed"
					}
					return ""
				})
				took := time.Since(began)
				over()
				e.done(w)
				e.close()
				synctest.Wait()
				if !strings.HasPrefix(note, c.note) || problem != c.problem || took < c.least || took > c.most || runs < int(took/(20*time.Second)) {
					t.Errorf("after %s and %d runs: %q, problem %q", took, runs, note, problem)
				}
			})
		})
	}
}
