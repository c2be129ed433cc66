package conduct

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sglaunch/internal/config"
	"sglaunch/internal/mask"
	"sglaunch/internal/plain"
	"sglaunch/internal/serve"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
	"sglaunch/internal/visible"
	"sglaunch/patch"
)

// attempt is one launch of the night on a real machine.
type attempt struct {
	*site
	n      int // of the launch
	trial  tune.Trial
	began  time.Time
	config config.Config
	at     endpoint
	server *Launch      // nil: it could not be started
	fault  string       // why not
	cold   string       // folder of caches of its own; "": it has none
	found  *tune.Caches // before it
	empty  bool         // its prefix cache was emptied, and nothing measured since
}

// start writes the trial's launch.toml and starts sglaunch on it.
func (s *site) start(ctx context.Context, a tune.Launch, t tune.Trial) (running, tune.Launched) {
	at := &attempt{site: s, n: a.Launch, trial: t, began: time.Now()}
	if err := at.open(a); err != nil {
		at.fault = err.Error()
		return at, tune.Launched{}
	}
	at.awaitID(ctx)
	return at, tune.Launched{Launch: a.Launch, ID: at.server.ID(), Command: mask.Argv(at.config.Server.Command), Caches: at.found}
}

// open begins the launch. That of the morning is what a person would run: the
// production name, its hooks, its policy.
func (at *attempt) open(a tune.Launch) (err error) {
	folder := at.launchFolder(at.n)
	if err := os.MkdirAll(folder, statedir.DirMode); err != nil {
		return fmt.Errorf("cannot make a folder for launch %d: %w", at.n, plain.Error(err))
	}
	morning := a.Slot.Stage == tune.Morning
	env, log := at.environment(), at.ownLines()
	if morning {
		at.config, err = at.promoted(at.trial)
		env, log = at.service(), ""
	} else {
		if a.Cold || at.study.Caches == tune.CachesCold {
			at.cold = filepath.Join(folder, "caches")
		}
		at.config, err = at.tried(at.trial, a.Slot.Stage, at.cold)
	}
	if err != nil {
		return err
	}
	if at.at, err = endpointOf(at.ownCommand(), at.config.Ready.URL); err != nil {
		return err
	}
	file := filepath.Join(folder, "launch.toml")
	head := fmt.Sprintf("launch %d of the study %s: %s\n", at.n, at.study.Name, at.trial.Name)
	if err := writeConfig(file, at.config, head); err != nil {
		return err
	}
	at.found = at.lookAtCaches()
	at.server, err = startLaunch(at.config.Server.Name, at.state, program{at.program, file, log, env}, morning)
	return err
}

// ownCommand is what the launch starts.
func (at *attempt) ownCommand() sglangcmd.Command {
	return sglangcmd.Parse(at.config.Server.Command, at.env, at.folder)
}

// ownLines is the file that keeps what sglaunch itself says of a trial.
func (at *attempt) ownLines() string { return filepath.Join(at.launchFolder(at.n), "sglaunch.log") }

// idLimit is how long a launch may take to make its records.
const idLimit = 30 * time.Second

// awaitID waits until the launch has told its ID, or will not any more.
func (at *attempt) awaitID(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, idLimit)
	defer cancel()
	for at.server.ID() == "" && ctx.Err() == nil {
		select {
		case <-at.server.gone:
			return
		default:
			wait(ctx, 20*time.Millisecond)
		}
	}
}

// await waits until the server may be measured. A launch bounds itself, phase
// by phase; until is what the night has left for it.
func (at *attempt) await(ctx context.Context, until time.Time) (tune.Ready, *tune.Ended) {
	if at.server == nil {
		return tune.Ready{}, &tune.Ended{Launch: at.n, Outcome: "refused", Text: at.fault, Took: time.Since(at.began)}
	}
	late, stop := reached(until)
	defer stop()
	select {
	case <-at.server.ready:
		return at.proven(ctx), nil
	case <-at.server.over:
		ended := at.ended(false)
		return tune.Ready{}, &ended
	case <-late:
		ended := at.halt("tune: its time is over")
		ended.Outcome, ended.Text = "timed_out", fmt.Sprintf("not ready after %s, when the night had no more time for it", round(time.Since(at.began)))
		return tune.Ready{}, &ended
	case <-ctx.Done():
		ended := at.halt("tune: " + context.Cause(ctx).Error())
		return tune.Ready{}, &ended
	}
}

// proven gathers what a ready server is known to be.
func (at *attempt) proven(ctx context.Context) tune.Ready {
	r := tune.Ready{Launch: at.n, Took: time.Since(at.began)}
	if a, ok := readAccount(at.state, at.server.Name, at.server.ID(), at.began); ok {
		r.Checked, r.Patches = a.checked, at.effects(a)
	}
	info, err := at.at.info(ctx)
	if err != nil {
		at.tell(err.Error())
		return r
	}
	r.Differs = differs(info, at.trial.Flags())
	return r
}

// effects are what each patch of the launch is known to have done. One that was
// not applied is named, too: what was measured is then not what was meant.
func (at *attempt) effects(a account) map[string]string {
	all := map[string]string{}
	for _, p := range at.config.Patches {
		switch effect, told := a.effects[p.Label()]; {
		case told:
			all[p.Label()] = effect
		case a.applied[p.Label()]:
			all[p.Label()] = string(patch.Unknown)
		default:
			all[p.Label()] = "not_applied"
		}
	}
	return all
}

const flushLimit = 30 * time.Second

func (at *attempt) flush(ctx context.Context) (tune.Flushed, *tune.Ended) {
	serving, cancel := at.server.Serving(ctx)
	defer cancel()
	limited, cancel := context.WithTimeout(serving, flushLimit)
	defer cancel()
	err := at.at.flush(limited)
	switch {
	case err == nil:
		at.empty = true
		return tune.Flushed{Launch: at.n, OK: true}, nil
	case errors.Is(context.Cause(serving), errOver):
		ended := at.ended(false)
		return tune.Flushed{}, &ended
	case ctx.Err() != nil:
		ended := at.halt("tune: " + context.Cause(ctx).Error())
		return tune.Flushed{}, &ended
	}
	return tune.Flushed{Launch: at.n, Text: err.Error()}, nil
}

func (at *attempt) stop(why string) tune.Ended {
	if at.server == nil {
		return tune.Ended{Launch: at.n, Outcome: "stopped", Took: time.Since(at.began)}
	}
	return at.halt("tune: " + why)
}

// halt stops the launch in order and says how it ended.
func (at *attempt) halt(by string) tune.Ended {
	return at.ended(!at.server.Stop(by, at.longestStop()))
}

// longestStop is how long a launch may take to end after it was asked to.
func (at *attempt) longestStop() time.Duration {
	s := at.config.Stop
	return s.Settle + s.Drain + s.Grace + s.Release + stopMargin
}

const stopMargin = 2 * time.Minute // for kill, evidence and files; each has a limit of its own

// ended says how the launch ended, in its own words. It waits for the end of
// sglaunch, which comes after the proof that all is gone.
func (at *attempt) ended(stuck bool) tune.Ended {
	if !stuck {
		timer := time.NewTimer(at.longestStop())
		defer timer.Stop()
		select {
		case <-at.server.gone:
		case <-timer.C:
			stuck = !at.server.Stop("tune: it does not end", at.longestStop())
		}
	}
	e := tune.Ended{Launch: at.n, Outcome: "stopped", Took: time.Since(at.began), Unkillable: stuck, Caches: at.lookAtCaches()}
	if !stuck {
		_ = os.RemoveAll(at.cold) // some 10 GB of kernels that no other launch uses
	}
	a, ok := readAccount(at.state, at.server.Name, at.server.ID(), at.began)
	if !ok || a.outcome == "" {
		return at.unaccounted(e)
	}
	e.Outcome, e.Cause, e.Phase = a.outcome, a.cause, a.phase
	e.Text, e.Held, e.Log = visible.Clip(serve.Plain(mask.String(a.text)), textMost), a.held, a.log()
	if e.Outcome != "stopped" {
		e.Excerpt = a.excerpt()
	}
	if a.unkillable != "" {
		e.Unkillable, e.Held = true, a.unkillable
	}
	if a.hardware != "" && e.Cause == "" {
		e.Cause, e.Text = "xid", a.hardware
	}
	return e
}

// textMost is how much of a cause's words a record keeps; its excerpt has more.
const textMost = 200

// unaccounted is the end of a launch that wrote no account of itself: it was
// refused before it began, or sglaunch was killed.
func (at *attempt) unaccounted(e tune.Ended) tune.Ended {
	text, _ := tailOf(at.ownLines(), 2<<10)
	e.Outcome, e.Text = "refused", lastLine(string(text))
	if _, ended := at.server.exit(); !ended {
		e.Outcome, e.Cause, e.Text = "crashed", "killed_outside", "sglaunch itself was killed"
	}
	return e
}

// interpreter is the python of the server, for clients that come with it.
func (s *site) interpreter(ctx context.Context) (patch.Interpreter, error) {
	if python := s.base.Server.Python; python != "" {
		return patch.Interpreter{Python: python, Dir: s.folder, Env: s.env}, nil
	}
	return patch.FindInterpreter(ctx, s.base.Server.Command, s.folder, s.env)
}
