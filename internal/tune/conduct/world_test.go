package conduct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/config"
	"sglaunch/internal/probe/answers"
	"sglaunch/internal/tune"
	"sglaunch/internal/tune/bench"
)

// world is a machine that exists in memory only: servers start, are measured
// and die in the time of a synctest bubble. It fails the test where two servers
// live at once, or where one that serves is ended.
type world struct {
	t     *testing.T
	ctx   context.Context // of the tuner; nil: it is never told to end
	study tune.Study
	noise *rand.Rand // nil: none

	// How a launch goes; nil parts are the usual.
	starts  func(tune.Trial, tune.Stage) *tune.Ended // a start that fails
	loads   func(tune.Trial, tune.Point) *tune.Ended // a server that dies under load
	speed   func(tune.Trial, tune.Point, int) float64
	gates   func() tune.Settled
	spoils  func(*tune.Measured)
	garbles func(tune.Trial) bool // its answers

	alive    *fakeServer
	launches int
	serves   string // trial that was handed over
	killed   bool   // the tuner is dead: nothing it does counts
	lines    []string
}

type fakeServer struct {
	*world
	n     int
	trial tune.Trial
	stage tune.Stage
	began time.Time
}

const (
	fakeStart = 6 * time.Minute
	fakeLoad  = 2 * time.Minute
	fakeStop  = 30 * time.Second
)

func (w *world) settle(ctx context.Context, a tune.Settle) tune.Settled {
	if w.alive != nil && !w.killed {
		w.t.Errorf("the gate is asked for while launch %d lives", w.alive.n)
	}
	if w.gates == nil {
		return tune.Settled{After: a.After, OK: true}
	}
	s := w.gates()
	s.After = a.After
	return s
}

func (w *world) start(ctx context.Context, a tune.Launch, t tune.Trial) (running, tune.Launched) {
	if w.alive != nil {
		w.t.Errorf("launch %d begins while launch %d lives", a.Launch, w.alive.n)
	}
	w.launches++
	w.alive = &fakeServer{w, a.Launch, t, a.Slot.Stage, time.Now()}
	return w.alive, tune.Launched{Launch: a.Launch, ID: fmt.Sprintf("fake-%d", a.Launch)}
}

func (w *world) noted(r tune.Record) {
	w.lines = append(w.lines, fmt.Sprintf("%s %T %+v", r.At.Format(time.TimeOnly), r.Body, r.Body))
	if s, ok := r.Body.(tune.Serving); ok {
		w.serves = s.Trial
	}
}

// sweep is what a tuner that comes back does first.
func (w *world) sweep() { w.alive, w.killed = nil, false }

func (s *fakeServer) await(ctx context.Context, until time.Time) (tune.Ready, *tune.Ended) {
	if s.starts != nil {
		if e := s.starts(s.trial, s.stage); e != nil {
			wait(ctx, fakeStart/2)
			return tune.Ready{}, s.dies(*e)
		}
	}
	if left := time.Until(until); left < fakeStart {
		wait(ctx, left)
		return tune.Ready{}, s.dies(tune.Ended{Outcome: "timed_out"})
	}
	if wait(ctx, fakeStart); ctx.Err() != nil {
		return tune.Ready{}, s.dies(tune.Ended{Outcome: "stopped"})
	}
	return tune.Ready{Launch: s.n, Took: fakeStart}, nil
}

func (s *fakeServer) dies(e tune.Ended) *tune.Ended {
	e.Launch, e.Took = s.n, time.Since(s.began)
	s.alive = nil
	return &e
}

func (s *fakeServer) ask(ctx context.Context, a tune.Ask) (tune.Answered, *tune.Ended) {
	sample := answers.Sample{Figures: answers.Figures{Answers: 24, Asked: 256, Tokens: 24 * 200, Variety: 0.7}, Sums: make([]string, 24)}
	if s.garbles != nil && s.garbles(s.trial) {
		sample.Faulty, sample.Fault = 24, "24 of 24, answer 1: one token 32 times in a row from token 1 on"
	}
	return tune.Answered{Launch: s.n, Sample: &sample}, nil
}

func (s *fakeServer) flush(ctx context.Context) (tune.Flushed, *tune.Ended) {
	return tune.Flushed{Launch: s.n, OK: true}, nil
}

func (s *fakeServer) measure(ctx context.Context, a tune.Measure) (tune.Measured, *tune.Ended) {
	if s.loads != nil {
		if e := s.loads(s.trial, a.Point); e != nil {
			return tune.Measured{}, s.dies(*e)
		}
	}
	if wait(ctx, fakeLoad); ctx.Err() != nil {
		return tune.Measured{}, s.dies(tune.Ended{Outcome: "stopped"})
	}
	rate := standIn(s.trial, a.Point)
	if s.speed != nil {
		rate = s.speed(s.trial, a.Point, s.n)
	}
	if s.noise != nil {
		rate *= 1 + 0.005*s.noise.NormFloat64()
	}
	m := tune.Measured{Launch: s.n, Point: a.Point, Began: time.Now().Add(-fakeLoad), Took: fakeLoad, Result: bench.Result{
		Format: bench.Serving, Requested: 64, Completed: 64, Metrics: map[string]float64{"output_throughput": rate, "p99_ttft_ms": 100},
	}}
	if s.spoils != nil {
		s.spoils(&m)
	}
	return m, nil
}

func (s *fakeServer) stop(why string) tune.Ended {
	if s.killed {
		return tune.Ended{}
	}
	time.Sleep(fakeStop)
	if s.serves == s.trial.ID && s.stage == tune.Morning {
		s.t.Errorf("launch %d serves, and is stopped: %s", s.n, why)
	}
	return *s.dies(tune.Ended{Outcome: "stopped"})
}

// standIn is the known function of the stand-in client, with the backend alone.
func standIn(t tune.Trial, p tune.Point) float64 {
	peak := 6000.0
	if t.Set["--moe-runner-backend"].Text == "flashinfer_trtllm" {
		peak *= 1.08
	}
	if t.Set["--chunked-prefill-size"].Text == "4096" {
		peak *= 0.97
	}
	return peak * float64(p.Concurrency) / float64(p.Concurrency+24)
}

var errKilled = errors.New("the tuner was killed")

// paper is a journal in memory that may be where the tuner dies.
type paper struct {
	world   *world
	lines   []json.RawMessage
	left    int  // records until it dies; negative: never
	unsaved bool // it dies before the record is on disk, else after
}

func (p *paper) Append(r any) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	dies := p.left == 0
	p.left--
	if !dies || !p.unsaved {
		p.lines = append(p.lines, text)
	}
	if dies {
		p.world.killed = true
		return errKilled
	}
	return nil
}

// study is a small one: two axes, one load.
func smallStudy(edit func(*tune.Study)) tune.Study {
	s := tune.DefaultStudy()
	s.Name, s.Base = "night", "launch.toml"
	s.Deadline = tune.Deadline{In: 6 * time.Hour}
	s.Repeats, s.Finalists = 3, 1
	s.Gate.Soak = 0
	s.Axes = map[string]tune.Axis{
		"--moe-runner-backend":   {Values: values("flashinfer_trtllm"), Category: "backend"},
		"--chunked-prefill-size": {Values: values("4096")},
	}
	s.Loads = []tune.Load{{Name: "chat", Bench: bench.Serving, Input: 100, Output: 100, Concurrency: []int{8, 32}}}
	s.Expect = tune.Estimate{Start: fakeStart, Load: fakeLoad, Release: fakeStop}
	if edit != nil {
		edit(&s)
	}
	return s
}

func values(texts ...string) (all []tune.Value) {
	for _, text := range texts {
		all = append(all, tune.TextValue(text))
	}
	return all
}

var smallBase = config.Config{Server: config.Server{Command: strings.Fields(
	"python -m sglang.launch_server --model-path /m --mem-fraction-static 0.85 --moe-runner-backend flashinfer_cutlass --chunked-prefill-size 8192")}}

// run performs a night in the world, from what the journal holds, as Run does.
func (w *world) run(p *paper, facts tune.Facts, asked <-chan string) (tune.End, []tune.Record, error) {
	w.t.Helper()
	records, err := Decode(p.lines)
	if err != nil {
		w.t.Fatal(err)
	}
	night, err := tune.Fold(records)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &conductor{night: night, memory: p, hands: w, asked: asked}
	end, err := w.begin(c, facts)
	records, derr := Decode(p.lines)
	if derr != nil {
		w.t.Fatal(derr)
	}
	return end, records, err
}

func (w *world) begin(c *conductor, facts tune.Facts) (tune.End, error) {
	p, err := tune.NewPlan(w.study, tune.Outlook{Now: time.Now(), Zone: time.UTC, Facts: facts, Base: w.study.BaseSettings(smallBase)})
	if err != nil {
		w.t.Fatal(err)
	}
	plan := p.Planned
	fresh := c.night.Began().IsZero()
	if !fresh {
		plan.Deadline, plan.Seed = c.night.Deadline(), c.night.Plan().Seed
	}
	if fresh || !same(plan, c.night.Plan()) {
		if err := c.note(plan); err != nil {
			return tune.End{}, err
		}
	}
	if !fresh && !c.night.Done() {
		if err := c.note(tune.Resumed{}); err != nil {
			return tune.End{}, err
		}
	}
	if w.ctx != nil {
		return c.run(w.ctx)
	}
	return c.run(w.t.Context())
}
