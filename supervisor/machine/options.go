package machine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sglaunch/phases"
)

// Options are the rules by which the machine decides. They come from
// launch.toml and the command line and do not change while a machine lives.
type Options struct {
	SGLang     bool          // the command is known to start an SGLang server
	Follower   bool          // one node of several: end the attempt with an exit code at once
	Act        string        // observe, start, all: see design.md section 5
	Policy     string        // on-failure, always, never
	Attempts   int           // spawns within Window, the first included
	Window     time.Duration // over which attempts are counted
	SameCause  int           // the same cause so often in a row: give up
	NoProgress int           // so many attempts without a new furthest phase: give up
	Backoff    Backoff
	// HealthyAfter is the stretch of serving after which budgets start anew.
	HealthyAfter  time.Duration
	OnForeignStop bool
	ReadyTimeout  time.Duration // for the whole start of one attempt
	// Limits bound the phases; one that is absent has its built-in floor.
	Limits map[phases.Phase]Limit
	// Learned is what history says of this machine and model. It may only
	// raise a built-in floor; a limit that a person set is left alone.
	Learned map[phases.Phase]Limit
	// Unwell is how long, after ready, HTTP may answer badly while nothing
	// moves. It ends an attempt with act = "all" alone.
	Unwell time.Duration
	// Total bounds the time without a healthy stretch; 0 = no bound.
	Total time.Duration
	Stop  Stop
	Check OutputCheck

	// Rungs are what a relaunch may change, in the order in which they are
	// tried. Only those listed in launch.toml belong here: see ReadyRungs.
	Rungs []Rung
	// Argv is the server's command line, for the values that rungs scale.
	// Empty: flags cannot be changed, and rungs that need it do not act.
	Argv []string
}

// Backoff is the pause between attempts: Initial, times Factor for each
// failure in a row, at most Max, give or take Jitter (a share of the pause).
type Backoff struct {
	Initial time.Duration
	Factor  float64
	Max     time.Duration
	Jitter  float64
}

// Limit bounds a phase. Quiet counts only time in which no source moved;
// Timeout bounds the whole phase.
type Limit struct {
	Quiet, Timeout time.Duration
}

// Stop bounds the end of an attempt.
type Stop struct {
	Signal  int           // asks the server to stop
	Drain   time.Duration // for SGLang's own drain, when it serves
	Grace   time.Duration // after that, before SIGKILL
	Release time.Duration // for GPU memory and ports after the last process
	Settle  time.Duration // before Signal, when it serves: from the word of the stop on
}

// LongestStop bounds the time from the first wish to end a launch to its exit,
// whatever hangs on the way.
func (o Options) LongestStop() time.Duration {
	s := o.Stop
	return evidenceLimit + AnswerMargin + s.Settle + s.Drain + s.Grace + KillLimit + AnswerMargin + DrainMargin +
		s.Release + AnswerMargin + PatchLimit + AnswerMargin
}

// Bounds of sglaunch's own work, none of which a launch may wait for longer.
const (
	evidenceLimit = 10 * time.Second // before a kill, so that nobody waits for a picture
	KillLimit     = 30 * time.Second // SIGKILL to the last process gone, D state apart
	AnswerMargin  = 15 * time.Second // for an answer of the shim or an effect to arrive
	DrainMargin   = 10 * time.Second // output after the tree is gone, while none is read
	hearLimit     = 5 * time.Minute  // the same while it is read, however long it is
	PatchLimit    = 2 * time.Minute  // apply or revert, a slow shared file system included
	CheckLimit    = 2 * time.Minute  // preflight; each check has its own shorter one
	spawnLimit    = 2 * time.Minute  // from asking the shim to the first process
	fatalGrace    = 30 * time.Second // after SGLang's own fatal line, for it to end by itself
	rankGrace     = 15 * time.Second // after a rank died, for SGLang to notice (5 s in v0.5.10)
	lateness      = time.Minute      // by which a busy loop may miss its own deadline
)

// Floors are the built-in limits of design.md section 5. What history teaches
// may only raise them.
func Floors() map[phases.Phase]Limit {
	return map[phases.Phase]Limit{
		phases.Starting:        {5 * time.Minute, 20 * time.Minute},
		phases.DistributedInit: {12 * time.Minute, 35 * time.Minute},
		phases.LoadingWeights:  {15 * time.Minute, 4 * time.Hour},
		phases.WeightsLoaded:   {20 * time.Minute, 90 * time.Minute},
		phases.KVCache:         {5 * time.Minute, 20 * time.Minute},
		phases.Autotune:        {20 * time.Minute, 2 * time.Hour},
		phases.GraphCapture:    {20 * time.Minute, 2 * time.Hour},
		phases.Warmup:          {12 * time.Minute, 30 * time.Minute},
	}
}

// DefaultOptions are those of a launch without configuration.
func DefaultOptions() Options {
	return Options{
		Act: "start", Policy: "on-failure",
		Attempts: 5, Window: 2 * time.Hour, SameCause: 3, NoProgress: 3,
		Backoff:      Backoff{Initial: 5 * time.Second, Factor: 2, Max: 5 * time.Minute, Jitter: 0.1},
		HealthyAfter: 10 * time.Minute,
		ReadyTimeout: 4 * time.Hour,
		Limits:       Floors(),
		Unwell:       3 * time.Minute,
		Stop:         Stop{Signal: 15, Drain: time.Minute, Grace: 15 * time.Second, Release: 2 * time.Minute},
		Check: OutputCheck{Mode: "auto", CheckSize: CheckSize{
			Generations: 75, Tokens: 1024, BatchSizes: []int{1, 8, 32}, Limit: 10 * time.Minute,
		}},
	}
}

// limit bounds a phase: as configured, or the built-in floor, which history
// may raise. Ready and serving have none.
func (o Options) limit(p phases.Phase) Limit {
	floor := Floors()[p]
	set, ok := o.Limits[p]
	if !ok {
		set = floor
	}
	learned := o.Learned[p]
	if set.Quiet == floor.Quiet {
		set.Quiet = max(set.Quiet, learned.Quiet)
	}
	if set.Timeout == floor.Timeout {
		set.Timeout = max(set.Timeout, learned.Timeout)
	}
	return set
}

// Validate says what makes a decision by these options impossible.
func (o Options) Validate() error {
	switch o.Act {
	case "observe", "start", "all":
	default:
		return fmt.Errorf("cannot act as %q: observe, start or all", o.Act)
	}
	switch o.Policy {
	case "on-failure", "always", "never":
	default:
		return fmt.Errorf("cannot relaunch by policy %q: on-failure, always or never", o.Policy)
	}
	switch o.Check.Mode {
	case "", "auto", "always", "off":
	default:
		return fmt.Errorf("cannot check answers %q: auto, always or off", o.Check.Mode)
	}
	if o.Attempts < 1 {
		return fmt.Errorf("cannot launch %d times: at least 1", o.Attempts)
	}
	if o.Backoff.Factor < 1 {
		return fmt.Errorf("cannot back off by factor %v: at least 1", o.Backoff.Factor)
	}
	if j := o.Backoff.Jitter; j < 0 || j > 1 {
		return fmt.Errorf("cannot jitter by %v: from 0 to 1", j)
	}
	for _, d := range []time.Duration{
		o.Window, o.Backoff.Initial, o.Backoff.Max, o.HealthyAfter, o.ReadyTimeout, o.Unwell, o.Total, o.Check.Limit,
		o.Stop.Drain, o.Stop.Grace, o.Stop.Release, o.Stop.Settle,
	} {
		if d < 0 {
			return fmt.Errorf("cannot wait for %s: a duration is at least 0", d)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(o.Limits)) {
		if l := o.Limits[p]; l.Timeout > 0 && l.Quiet > l.Timeout {
			return fmt.Errorf("cannot wait for %s while nothing moves in %s: its timeout is %s; set phases.limits.%s.timeout as well", l.Quiet, p, l.Timeout, p)
		}
	}
	for _, r := range o.Rungs {
		if err := r.validate(); err != nil {
			return err
		}
	}
	return nil
}
