package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sglaunch/internal/config"
	"sglaunch/internal/notify"
	"sglaunch/internal/sglangcmd"
)

const (
	watchdog     = time.Minute // the shim answers within milliseconds
	restartLeast = time.Minute
)

func newUnitCommand() *cobra.Command {
	var flags launchFlags
	c := &cobra.Command{
		Use:   "unit [-c launch.toml] [flags] [-- command ...]",
		Short: "Print a systemd unit that fits a launch",
		Long: `Print a systemd unit for what "sglaunch run" with the same words would start: its
time limits are computed from [stop] and [relaunch], its mounts from the paths
that the launch uses.

  sglaunch unit -c /etc/sglaunch/glm.toml >/etc/systemd/system/sglaunch-glm.service
  systemctl daemon-reload && systemctl enable --now sglaunch-glm`,
		Args: argsAfterDash,
		RunE: func(c *cobra.Command, args []string) error {
			if flags.file == "" && len(args) == 0 && !flags.set.Changed("server.command") {
				return &exitError{exitUsage, errors.New("cannot print a unit: no command is given"),
					"sglaunch unit -c launch.toml, or sglaunch unit -- python -m sglang.launch_server ..."}
			}
			u, err := unitOf(flags, args)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.OutOrStdout(), u)
			return err
		},
	}
	flags.register(c)
	return c
}

// unitOf describes the unit of a launch.
func unitOf(flags launchFlags, command []string) (notify.Unit, error) {
	cfg, err := flags.load(command)
	if err != nil {
		return notify.Unit{}, err
	}
	options, err := optionsOf(cfg)
	if err != nil {
		return notify.Unit{}, err
	}
	self, err := thisProgram()
	if err != nil {
		return notify.Unit{}, err
	}
	dir, err := serverDirectory(cfg, "")
	if err != nil {
		return notify.Unit{}, err
	}
	u := notify.Unit{
		Name: cfg.Server.Name, Program: self, Dir: dir, Observe: cfg.Relaunch.Act == "observe",
		Stop: options.LongestStop() + cfg.Hooks.Limit, Restart: max(cfg.Relaunch.Backoff.Max, restartLeast), Watchdog: watchdog,
	}
	var file string
	if flags.file != "" {
		if file, err = filepath.Abs(flags.file); err != nil {
			return notify.Unit{}, fmt.Errorf("cannot find %q: %w", flags.file, err)
		}
	}
	u.Run = runWords(flags.set, file, command)
	program := programOf(cfg)
	if filepath.IsAbs(program) {
		u.Bin = filepath.Dir(program)
	}
	u.Paths = notify.Mounts([]string{self, file, dir, program, cfg.Server.EnvFile, cfg.Log.Directory, modelOf(cfg)})
	return u, nil
}

// runWords are the words of "sglaunch run" that mean the same launch.
func runWords(set *pflag.FlagSet, file string, command []string) []string {
	words := []string{"run"}
	if file != "" {
		words = append(words, "-c", file)
	}
	set.Visit(func(f *pflag.Flag) {
		if f.Name != "config" {
			words = append(words, "--"+f.Name+"="+f.Value.String())
		}
	})
	if len(command) > 0 {
		words = append(append(words, "--"), command...)
	}
	return words
}

// programOf is where the server's first word is found now: a unit has another
// PATH than the person who prints it.
func programOf(c config.Config) string {
	if path, err := exec.LookPath(c.Server.Command[0]); err == nil {
		return path
	}
	return c.Server.Command[0]
}

// modelOf is the model, where it is a path.
func modelOf(c config.Config) string {
	return sglangcmd.Parse(c.Server.Command, nil, c.Server.Directory).Server().Model
}
