package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sglaunch/internal/proc"
	"sglaunch/internal/statedir"
	"sglaunch/patch"
	"sglaunch/supervisor"
)

func newRecoverCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "recover",
		Short: "End and undo what launches left behind whose sglaunch has died",
		Long: `End every process of launches whose sglaunch was killed, or that ended with
processes that would not go (13), and restore the files that they had patched.
Launches that live are left alone, so it is safe at any time: from ExecStartPre=
and ExecStopPost= of a unit, from cron, by hand. The exit code is 0 where nothing
is left, 12 where a file could not be restored, now or earlier, 13 where a process
would not go, 1 where it could not be written down that a launch has ended, or
where the record of one with living processes is damaged.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := statedir.Open()
			if err != nil {
				return err
			}
			healed, err := supervisor.Recover(c.Context(), dir)
			if err == nil {
				healed, err = withUnrestored(healed)
			}
			if asJSON {
				if err := writeJSON(c.OutOrStdout(), append([]supervisor.Healed{}, healed...)); err != nil {
					return err
				}
			} else {
				printHealed(c.OutOrStdout(), healed)
			}
			if err != nil {
				return &exitError{exitPatch, err, driftHint(err)}
			}
			return unhealed(healed)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "for scripts")
	return c
}

// withUnrestored adds the files that an earlier recovery, or the end of a
// launch, had to leave alone: they are still not what they were.
func withUnrestored(healed []supervisor.Healed) ([]supervisor.Healed, error) {
	ledger, err := openLedger()
	if err != nil {
		return healed, err
	}
	held, err := ledger.Status()
	if err != nil {
		return healed, err
	}
	earlier := supervisor.Healed{Originals: map[string]string{}}
	for _, h := range held {
		if (h.State == patch.Drifted || h.State == patch.Missing) && len(h.Launches) == 0 && !h.Kept {
			earlier.Drifted = append(earlier.Drifted, h.Path)
			earlier.Originals[h.Path] = h.Original
		}
	}
	if len(earlier.Drifted) > 0 {
		healed = append(healed, earlier)
	}
	return healed, nil
}

func printHealed(w io.Writer, healed []supervisor.Healed) {
	if len(healed) == 0 {
		fmt.Fprintln(w, "nothing to recover")
	}
	for _, h := range healed {
		if h.Launch == "" {
			printEarlier(w, h)
			continue
		}
		fmt.Fprintf(w, "%s: %d processes ended", h.Launch, h.Killed)
		if len(h.Restored) > 0 {
			fmt.Fprintf(w, ", restored %s", strings.Join(h.Restored, ", "))
		}
		if len(h.Drifted) > 0 {
			fmt.Fprintf(w, ", changed or removed by somebody and left alone %s", strings.Join(h.Drifted, ", "))
		}
		for _, p := range h.Left {
			fmt.Fprintf(w, "; process %d (%s) would not go: %s", p.PID, p.Comm, proc.Condition(p))
		}
		if h.Err != "" {
			fmt.Fprintf(w, "; %s", h.Err)
		}
		fmt.Fprintln(w)
	}
}

// printEarlier tells of files whose launches were over before.
func printEarlier(w io.Writer, h supervisor.Healed) {
	for _, path := range h.Restored {
		fmt.Fprintf(w, "restored %s\n", path)
	}
	if len(h.Drifted) == 0 {
		return
	}
	for _, path := range h.Drifted {
		fmt.Fprintf(w, "%s was changed or removed by somebody while it was patched, and left alone; its original is kept in %s\n", path, h.Originals[path])
	}
	fmt.Fprintf(w, "to bring back: sglaunch patch revert --force %s\n", strings.Join(h.Drifted, " "))
}

// unhealed turns what is left into an exit code.
func unhealed(healed []supervisor.Healed) error {
	code := exitOK
	for _, h := range healed {
		switch {
		case len(h.Left) > 0:
			code = exitHeld
		case len(h.Drifted) > 0 && code == exitOK:
			code = exitPatch
		case h.Err != "" && code == exitOK:
			code = exitFailed // a later recover has to look again
		}
	}
	if code != exitOK {
		return quietExit(code)
	}
	return nil
}
