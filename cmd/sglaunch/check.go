package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sglaunch/internal/preflight"
	"sglaunch/internal/visible"
	"sglaunch/supervisor"
)

func newCheckCommand() *cobra.Command {
	var flags launchFlags
	c := &cobra.Command{
		Use:   "check [-c launch.toml] [flags] [-- command ...]",
		Short: "Look at what a launch would need, and start nothing",
		Long: `Show the effective configuration, run the checks that a launch begins with, and
say of each patch what would become of it. Nothing is started, written or
patched. The exit code is 0 where nothing is certain to fail, else that of the
launch: 10 where it may pass (a taken port), 11 where it will not, 12 where a
patch would end it, 78 where it cannot be set up.`,
		Args: argsAfterDash,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := flags.load(args)
			if err != nil {
				return err
			}
			setup, options, err := launchOf(cfg, "", true)
			if err != nil {
				return notSetUp(err)
			}
			if !flags.quiet {
				fmt.Fprintln(c.OutOrStdout(), cfg.Effective())
			}
			checks := supervisor.Check(c.Context(), setup, options)
			printChecks(c.OutOrStdout(), checks)
			if code := supervisor.RefusalCode(checks); code != exitOK {
				return quietExit(code)
			}
			return nil
		},
	}
	flags.register(c)
	return c
}

func printChecks(w io.Writer, checks []preflight.Check) {
	for _, c := range checks {
		fmt.Fprintf(w, "%-4s  %-18s %s\n", c.Status, c.Name, visible.Line(c.Found))
		if c.Advice != "" {
			fmt.Fprintf(w, "%-4s  %-18s -> %s\n", "", "", visible.Line(c.Advice))
		}
	}
}
