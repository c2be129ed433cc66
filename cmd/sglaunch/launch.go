package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"sglaunch/internal/config"
	"sglaunch/internal/history"
	"sglaunch/internal/mask"
	"sglaunch/internal/notify"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/phases"
	"sglaunch/supervisor"
	"sglaunch/supervisor/machine"
)

// launchOf turns a configuration into what the supervisor runs; began is the working
// directory of a launch that goes on.
func launchOf(c config.Config, began string, quiet bool) (setup supervisor.Setup, options machine.Options, err error) {
	self, err := thisProgram()
	if err != nil {
		return setup, options, err
	}
	state, err := statedir.Open()
	if err != nil {
		return setup, options, err
	}
	if c.Log.Directory != "" {
		if state.State, err = filepath.Abs(c.Log.Directory); err != nil {
			return setup, options, err
		}
	}
	env, err := c.Environ(os.Environ())
	if err != nil {
		return setup, options, err
	}
	rules, err := rulesOf(c)
	if err != nil {
		return setup, options, err
	}
	dir, err := serverDirectory(c, began)
	if err != nil {
		return setup, options, err
	}
	setup = supervisor.Setup{
		Name: c.Server.Name, Argv: c.Server.Command, Dir: dir, Env: env,
		Stdio: c.Server.Stdio, Stdin: c.Server.Stdin, Python: c.Server.Python,
		URL: c.Ready.URL, Socket: c.Listen.Socket, HTTP: c.Listen.HTTP, Quiet: quiet, Patches: c.Patches,
		Devices: c.GPU.Devices.UUIDs, State: state, Sampler: []string{self, samplerCommand},
		Settings: supervisor.Settings{
			Hooks: hooksOf(c.Hooks), Rules: rules,
			Keep:     history.Keep{Launches: c.Log.Keep.Launches, Evidence: int64(c.Log.Keep.Evidence)},
			Rotate:   wire.Rotate{Size: int64(c.Log.Rotate.Size), Age: wire.Duration(c.Log.Rotate.Age), Keep: c.Log.Rotate.Keep},
			Starting: c.GPU.Sample.Starting, Serving: c.GPU.Sample.Serving,
			XidReport: c.GPU.Xid == "report",
		},
	}
	options, err = optionsOf(c)
	return setup, options, err
}

func hooksOf(h config.Hooks) notify.Hooks {
	return notify.Hooks{
		OnReady: h.OnReady, OnStopping: h.OnStopping, OnFailure: h.OnFailure, OnRecovered: h.OnRecovered,
		OnGaveUp: h.OnGaveUp, OnStuck: h.OnStuck, Webhook: h.Webhook, Limit: h.Limit,
	}
}

// rulesOf lays a person's own rules over the built-in ones: first those of a
// file, then those of launch.toml itself, which win.
func rulesOf(c config.Config) (*phases.RuleSet, error) {
	rules := phases.BuiltinRules()
	file, err := c.OwnRules()
	if err != nil {
		return nil, err
	}
	if file != nil {
		rules = rules.With(file)
	}
	own, err := phases.NewRuleSet(c.Phases.Own)
	if err != nil {
		return nil, fmt.Errorf("cannot use [[phases.rule]]: %w", err)
	}
	return rules.With(own), nil
}

func optionsOf(c config.Config) (machine.Options, error) {
	o := machine.DefaultOptions()
	r := c.Relaunch
	o.Act, o.Policy = r.Act, r.Policy
	o.Attempts, o.Window, o.SameCause, o.NoProgress = r.Attempts, r.Window, r.SameCause, r.NoProgress
	o.Backoff = machine.Backoff{Initial: r.Backoff.Initial, Factor: r.Backoff.Factor, Max: r.Backoff.Max, Jitter: r.Backoff.Jitter}
	o.HealthyAfter, o.OnForeignStop, o.ReadyTimeout = r.HealthyAfter, r.OnForeignStop, c.Ready.Timeout
	for phase, limit := range c.Phases.Limits {
		o.Limits[phase] = machine.Limit{
			Quiet:   cmp.Or(limit.Quiet, o.Limits[phase].Quiet),
			Timeout: cmp.Or(limit.Timeout, o.Limits[phase].Timeout),
		}
	}
	o.Stop = machine.Stop{
		Signal: signalNumber(c.Stop.Signal), Drain: c.Stop.Drain, Grace: c.Stop.Grace, Release: c.Stop.Release, Settle: c.Stop.Settle,
	}
	o.Check = machine.OutputCheck{Mode: c.Ready.OutputCheck, CheckSize: machine.CheckSize(c.Ready.Check)}
	o.Argv = mask.Argv(c.Server.Command) // the journal keeps it; no rung scales a secret
	var err error
	if o.Rungs, err = rungsOf(c); err != nil {
		return o, err
	}
	return o, o.Validate()
}

// rungsOf is the ladder of a launch: the ready-made rungs that are listed, then
// the person's own.
func rungsOf(c config.Config) ([]machine.Rung, error) {
	rungs, err := machine.ReadyRungs(c.Relaunch.Fallbacks)
	if err != nil {
		return nil, err
	}
	for i, f := range c.Fallbacks {
		r := machine.Rung{
			Name: fmt.Sprintf("fallback %d (%s)", i+1, f.Cause), Causes: []string{f.Cause},
			Set: f.Set, Env: f.Env, Min: float64(f.Min), Times: f.Max,
		}
		if f.Phase != "" {
			p, err := phases.ParsePhase(f.Phase)
			if err != nil {
				return nil, fmt.Errorf("cannot use [[fallback]] %d: %w", i+1, err)
			}
			r.Phases = []phases.Phase{p}
		}
		rungs = append(rungs, r)
	}
	return rungs, nil
}

// signalNumber knows every name that the configuration accepts.
func signalNumber(name string) int {
	if n := unix.SignalNum(name); n != 0 {
		return int(n)
	}
	return int(syscall.SIGTERM)
}
