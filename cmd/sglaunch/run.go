package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sglaunch/internal/config"
	"sglaunch/internal/shim"
)

// launchFlags are the flags that say what a launch is; run, check and the
// supervisor read the same.
type launchFlags struct {
	file  string
	quiet bool
	set   *pflag.FlagSet
}

func (f *launchFlags) register(c *cobra.Command) {
	c.Flags().StringVarP(&f.file, "config", "c", "", "launch.toml")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "no lines of sglaunch's own on standard error")
	config.Flags(c.Flags())
	f.set = c.Flags()
}

// load reads the configuration that flags, file and command make together.
func (f *launchFlags) load(command []string) (config.Config, error) {
	return config.Load(config.Options{Path: f.file, Command: command, Sets: config.SetsFrom(f.set)})
}

const runLong = `Start the server and keep it served. Everything after -- is the command that
you would type without sglaunch; its output passes through byte for byte.

  sglaunch run -- python -m sglang.launch_server --model-path /models/m --tp 8
  sglaunch run -c launch.toml

Ctrl-C or SIGTERM stops the server and lets it drain; a second one does not
wait for the drain, nor does Ctrl-\; a third kills at once. A terminal that
vanishes stops it too.

With --detach it runs on when you log out: as a service of systemd where there is
one, else in a session of its own. "sglaunch attach" follows its output.`

func newRunCommand() *cobra.Command {
	var flags launchFlags
	var detached bool
	c := &cobra.Command{
		Use:   "run [-c launch.toml] [flags] [-- command ...]",
		Short: "Start the server and keep it served",
		Long:  runLong,
		Args:  argsAfterDash,
		RunE: func(c *cobra.Command, args []string) error {
			if flags.file == "" && len(args) == 0 && !flags.set.Changed("server.command") {
				return &exitError{exitUsage, errors.New("cannot run: no command is given"),
					"sglaunch run -- python -m sglang.launch_server --model-path ... or sglaunch run -c launch.toml"}
			}
			// Errors of the configuration are told here, before anything
			// starts; the supervisor reads it again for itself.
			cfg, err := flags.load(args)
			if err != nil {
				return err
			}
			if detached {
				return runDetached(c, cfg)
			}
			return runShim(os.Args[1:], shim.Options{Passthrough: cfg.Log.Passthrough})
		},
	}
	flags.register(c)
	c.Flags().BoolVarP(&detached, "detach", "d", false, "return once it runs; attach follows it")
	return c
}

// argsAfterDash accepts words only after --, so that a flag of the server is
// never taken for one of ours.
func argsAfterDash(c *cobra.Command, args []string) error {
	var hungry string // took -- for its value
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "--" {
			hungry = f.Name
		}
	})
	if hungry != "" {
		return &exitError{exitUsage, fmt.Errorf("cannot use --%s: its value is missing", hungry), c.CommandPath() + " --help lists the flags"}
	}
	if c.ArgsLenAtDash() > 0 || c.ArgsLenAtDash() < 0 && len(args) > 0 {
		return &exitError{exitUsage, fmt.Errorf("cannot use %q: the command goes after --", args[0]),
			"sglaunch run -- python -m sglang.launch_server ..."}
	}
	return nil
}

// runShim becomes the shim; its supervisor gets the same words.
func runShim(args []string, options shim.Options) error {
	self, err := thisProgram()
	if err != nil {
		return err
	}
	at := slices.Index(args, "run")
	if at < 0 {
		return fmt.Errorf("internal error: no run in %q", args)
	}
	supervisor := append([]string{self}, args[:at]...)
	supervisor = append(append(supervisor, supervisorCommand), args[at+1:]...)
	options.Supervisor = supervisor
	if code := shim.Run(options); code != exitOK {
		return quietExit(code)
	}
	return nil
}
