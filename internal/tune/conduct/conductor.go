package conduct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sglaunch/internal/tune"
	"sglaunch/internal/visible"
)

// hands do on a machine what a night asks for. Every call is bounded by its own
// limits and by its context, and says in records what came of it.
type hands interface {
	settle(ctx context.Context, a tune.Settle) tune.Settled
	// start begins a launch and returns once it has its records, or has ended.
	start(ctx context.Context, a tune.Launch, t tune.Trial) (running, tune.Launched)
	// noted hears every record after it is on disk.
	noted(r tune.Record)
}

// running is one launch of the night. Where a call finds that it has ended, or
// ends it, it says how; then the other answer is empty.
type running interface {
	await(ctx context.Context, until time.Time) (tune.Ready, *tune.Ended)
	ask(ctx context.Context, a tune.Ask) (tune.Answered, *tune.Ended)
	flush(ctx context.Context) (tune.Flushed, *tune.Ended)
	measure(ctx context.Context, a tune.Measure) (tune.Measured, *tune.Ended)
	stop(why string) tune.Ended
}

// memory is where records go: a Journal.
type memory interface{ Append(record any) error }

// conductor asks the night what to do, has it done, and writes down what came
// of it: an intent before, a verdict after. It decides nothing.
type conductor struct {
	night  *tune.Night
	memory memory
	hands  hands
	asked  <-chan string // who wants the trials to end

	launch  running // the open one; nil: none is
	morning bool    // it is the one that shall serve
}

// errAsked ends a step because a person wants the trials to end.
var errAsked = errors.New("the end of the trials was asked for")

// run performs the night until it is over, or until ctx ends: then the server of
// the moment is stopped and nothing is written about it, so that the next run
// takes the night up where it stood.
func (c *conductor) run(ctx context.Context) (end tune.End, err error) {
	for err == nil && ctx.Err() == nil {
		select {
		case by := <-c.asked:
			err = c.note(tune.StopAsked{By: by})
			continue
		default:
		}
		a := c.night.Next(time.Now())
		if end, over := a.(tune.End); over {
			return end, c.finish(end)
		}
		err = c.step(ctx, a)
	}
	if c.launch != nil {
		c.launch.stop("the tuner ends")
	}
	return tune.End{}, errors.Join(err, ctx.Err())
}

// finish writes the last record, once.
func (c *conductor) finish(end tune.End) error {
	if c.night.Done() {
		return nil
	}
	return c.note(end.Done)
}

// step performs one action. A person's wish cuts short what belongs to a trial,
// and is written down when the step is over.
func (c *conductor) step(parent context.Context, a tune.Action) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if l, ok := a.(tune.Launch); ok {
		c.morning = l.Slot.Stage == tune.Morning
	}
	morning, over, by := c.morning, make(chan struct{}), make(chan string, 1)
	go func() {
		defer close(by)
		select {
		case who := <-c.asked:
			if by <- who; !morning {
				cancel(errAsked)
			}
		case <-over:
		}
	}()
	err := c.perform(ctx, a)
	close(over)
	if who, asked := <-by; asked && err == nil {
		err = c.note(tune.StopAsked{By: who})
	}
	return err
}

// note writes a record to disk; only then is it known to the night.
func (c *conductor) note(b tune.Body) error {
	r := tune.Record{Seq: c.night.Seq(), At: time.Now(), Body: b}
	if err := c.memory.Append(r); err != nil {
		return err
	}
	if err := c.night.Add(r); err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	c.hands.noted(r)
	return nil
}

func (c *conductor) perform(ctx context.Context, a tune.Action) error {
	switch a := a.(type) {
	case tune.Note:
		return c.note(a.Body)
	case tune.Settle:
		settled := c.hands.settle(ctx, a)
		if ctx.Err() != nil && !settled.OK {
			return nil // it was cut short: it says nothing about the machine
		}
		return c.note(settled)
	case tune.Launch:
		return c.begin(ctx, a)
	case tune.Ask:
		answered, ended := c.launch.ask(ctx, a)
		return c.answer(ctx, answered, ended)
	case tune.Flush:
		flushed, ended := c.launch.flush(ctx)
		return c.answer(ctx, flushed, ended)
	case tune.Measure:
		if err := c.note(tune.Measuring{Launch: a.Launch, Point: a.Point}); err != nil {
			return err
		}
		measured, ended := c.launch.measure(ctx, a)
		return c.answer(ctx, measured, ended)
	case tune.Stop:
		ended := c.launch.stop(a.Why)
		if a.Cause != "" && ended.Outcome == "stopped" && ended.Cause == "" {
			ended.Outcome, ended.Cause, ended.Text = "unhealthy", a.Cause, visible.Clip(a.Why, textMost)
		}
		return c.answer(context.Background(), nil, &ended)
	case tune.HandOver:
		return c.note(tune.Serving(a))
	case tune.Wait:
		awaitTime(ctx, a.Until)
		return nil
	}
	panic(fmt.Sprintf("conduct: unknown action %T", a))
}

// begin makes a launch, up to ready or its end.
func (c *conductor) begin(ctx context.Context, a tune.Launch) error {
	trials := c.night.Plan().Trials
	i := slices.IndexFunc(trials, func(t tune.Trial) bool { return t.ID == a.Slot.Trial })
	if i < 0 {
		return fmt.Errorf("internal error: no trial %q in the plan", a.Slot.Trial)
	}
	if err := c.note(a.Intended); err != nil {
		return err
	}
	var launched tune.Launched
	if c.launch, launched = c.hands.start(ctx, a, trials[i]); launched.ID != "" {
		if err := c.note(launched); err != nil {
			return err
		}
	}
	ready, ended := c.launch.await(ctx, a.Until)
	return c.answer(ctx, ready, ended)
}

// answer writes what was found, or the end that came in its way. An end that we
// made because we were told to end ourselves says nothing about the launch: it
// counts as interrupted, and nothing is written.
func (c *conductor) answer(ctx context.Context, found tune.Body, ended *tune.Ended) error {
	if ended == nil {
		return c.note(found)
	}
	c.launch = nil
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errAsked) {
		return nil
	}
	return c.note(*ended)
}
