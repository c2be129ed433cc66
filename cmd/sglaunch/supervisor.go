package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sglaunch/internal/config"
	"sglaunch/internal/gpu"
	"sglaunch/internal/history"
	"sglaunch/internal/mask"
	"sglaunch/internal/notify"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/phases"
	"sglaunch/supervisor"
	"sglaunch/supervisor/machine"
)

// The two processes that the shim and the supervisor start for themselves.
const (
	supervisorCommand = "__supervisor"
	samplerCommand    = "__gpu-sampler"
)

// onOutput is supervisor.Setup.OnOutput; only tests set it.
var onOutput func([]byte)

func newSupervisorCommand() *cobra.Command {
	var flags launchFlags
	c := &cobra.Command{
		Use: supervisorCommand, Hidden: true, Args: argsAfterDash,
		RunE: func(c *cobra.Command, args []string) error {
			unmoved()
			conn, err := shimConn()
			if err != nil {
				return err
			}
			hello, err := supervisor.Greet(conn)
			if err != nil {
				return err
			}
			setup, options, err := setUp(&flags, args, hello.Ledger)
			switch {
			case err != nil && hello.Launch != nil:
				return err // there is a server: it is kept, whatever became of its configuration
			case err != nil:
				return endLaunch(conn, exitConfig, err)
			}
			setup.OnOutput = onOutput
			err = supervisor.Serve(conn, hello, setup, options)
			if errors.Is(err, supervisor.ErrAlreadyRunning) {
				return endLaunch(conn, exitRunning, err)
			}
			return err
		},
	}
	flags.register(c)
	return c
}

// unmoved keeps a process of sglaunch's own from ending by what is no word to it:
// standard error breaks when the shim dies, which is when there is most to do;
// Slurm and container engines send their signals to every process, and it is the
// shim that hears them. A handler, unlike ignoring, is not passed on to the
// processes that are started from here.
func unmoved() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
}

// shimConn takes the descriptor that the shim left for us.
func shimConn() (*wire.Conn, error) {
	f := os.NewFile(wire.FD, "shim")
	if f == nil {
		return nil, errors.New("cannot be called by hand: sglaunch run starts it")
	}
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("cannot be called by hand: sglaunch run starts it (%w)", err)
	}
	unix.CloseOnExec(wire.FD)
	_ = f.Close()
	return wire.NewConn(conn), nil
}

// endLaunch tells a person why there is no launch, and the shim the exit code.
func endLaunch(conn *wire.Conn, code int, err error) error {
	if sendErr := conn.Send(wire.Message{Type: wire.Print, Text: "sglaunch: " + err.Error()}); sendErr != nil {
		return sendErr
	}
	return conn.Send(wire.Message{Type: wire.Finish, Code: code})
}

// setUp reads the configuration, or takes the one that the supervisor before has
// left.
func setUp(flags *launchFlags, command []string, left string) (supervisor.Setup, machine.Options, error) {
	r, err := newRereader(flags, command, left)
	if err != nil {
		return supervisor.Setup{}, machine.Options{}, err
	}
	return r.setup()
}

func newSamplerCommand() *cobra.Command {
	return &cobra.Command{
		Use: samplerCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return gpu.ServeSampler(c.Context(), os.Stdin, os.Stdout)
		},
	}
}

// launchOf turns a configuration into what the supervisor runs.
func launchOf(c config.Config, quiet bool) (supervisor.Setup, machine.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return supervisor.Setup{}, machine.Options{}, fmt.Errorf("cannot find this program: %w", err)
	}
	state, err := statedir.Open()
	if err != nil {
		return supervisor.Setup{}, machine.Options{}, err
	}
	if c.Log.Directory != "" {
		if state.State, err = filepath.Abs(c.Log.Directory); err != nil {
			return supervisor.Setup{}, machine.Options{}, err
		}
	}
	env, err := c.Server.Environ(os.Environ())
	if err != nil {
		return supervisor.Setup{}, machine.Options{}, err
	}
	rules, err := rulesOf(c)
	if err != nil {
		return supervisor.Setup{}, machine.Options{}, err
	}
	dir := c.Server.Directory
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return supervisor.Setup{}, machine.Options{}, fmt.Errorf("cannot find the working directory: %w", err)
		}
	}
	setup := supervisor.Setup{
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
	options, err := optionsOf(c)
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
	if filepath.IsAbs(c.Phases.Rules) { // else the name of the built-in family
		file, err := config.ReadRules(c.Phases.Rules)
		if err != nil {
			return nil, err
		}
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
			Quiet:   orElse(limit.Quiet, o.Limits[phase].Quiet),
			Timeout: orElse(limit.Timeout, o.Limits[phase].Timeout),
		}
	}
	o.Stop = machine.Stop{
		Signal: signalNumber(c.Stop.Signal), Drain: c.Stop.Drain, Grace: c.Stop.Grace, Release: c.Stop.Release, Settle: c.Stop.Settle,
	}
	o.Check = machine.OutputCheck{Mode: c.Ready.OutputCheck, CheckSize: machine.CheckSize(c.Ready.Check)}
	o.Argv = mask.Argv(c.Server.Command) // the journal keeps it; no rung scales a secret
	var err error
	o.Rungs, err = rungsOf(c)
	return o, err
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

func orElse(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// signalNumber knows every name that the configuration accepts.
func signalNumber(name string) int {
	if n := unix.SignalNum(name); n != 0 {
		return int(n)
	}
	return int(syscall.SIGTERM)
}
