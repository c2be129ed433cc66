package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sglaunch/internal/proc"
	"sglaunch/patch"
)

func newPatchStatusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "List the files that hold a patch, and who needs it",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			ledger, err := openLedger()
			if err != nil {
				return err
			}
			held, err := ledger.Status()
			if err != nil {
				return &exitError{exitPatch, err, ""}
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), append([]patch.Held{}, held...))
			}
			return printHeld(c.OutOrStdout(), held)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "for scripts")
	return c
}

func printHeld(w io.Writer, held []patch.Held) error {
	if len(held) == 0 {
		_, err := fmt.Fprintln(w, "no file holds a patch")
		return err
	}
	for _, h := range held {
		linef(w, "%-8s %s", h.State, h.Path)
		if len(h.Patches) > 0 {
			linef(w, "         patches   %s", strings.Join(h.Patches, ", "))
		}
		for _, o := range h.Launches {
			linef(w, "         needed by %s%s", o.Launch, lifeOf(o))
		}
		if h.Kept {
			fmt.Fprintf(w, "         kept until it is reverted by hand\n")
		}
		switch {
		case h.State == patch.Drifted:
			linef(w, "         somebody changed it; the original is kept in %s", h.Original)
		case h.State == patch.Missing:
			linef(w, "         it is gone; the original is kept in %s", h.Original)
		case len(h.Launches) == 0 && !h.Kept:
			fmt.Fprintf(w, "         needed by nobody: sglaunch recover restores the file\n")
		}
	}
	return nil
}

func lifeOf(o patch.Owner) string {
	if alive(o) {
		return fmt.Sprintf(" (process %d)", o.PID)
	}
	return ", which is dead: sglaunch recover restores the file"
}

func alive(o patch.Owner) bool {
	return o.BootID == proc.BootID() && proc.Alive(proc.ID{PID: o.PID, Start: o.StartTime})
}

func newPatchRevertCommand() *cobra.Command {
	var asJSON, force bool
	c := &cobra.Command{
		Use:   "revert [--force] [FILE|NAME ...]",
		Short: "Restore files whose patch was to be kept",
		Long: `Restore the files that hold a patch which no launch takes back: applied by hand,
or with revert = "never". Files that a launch needs are left to it; files of a
dead launch are restored by "sglaunch recover", which first ends what is left of
it. FILE or the NAME of a patch limits it to those. The exit code is 12 where
somebody has changed or removed a file: it is left alone, and still yours to
revert. With --force the original comes back there too; what the file holds is
kept in the state directory.`,
		RunE: func(c *cobra.Command, args []string) error {
			ledger, err := openLedger()
			if err != nil {
				return err
			}
			if force && len(args) == 0 {
				return &exitError{exitUsage, errors.New("cannot force a revert: no file and no patch is named"), "sglaunch patch status lists them"}
			}
			revert := ledger.RevertKept
			if force {
				revert = ledger.RevertForced
			}
			reverted, err := revert(c.Context(), args...)
			if errors.Is(err, patch.ErrUnknown) {
				return &exitError{exitUsage, err, "the arguments are files or names of patches that sglaunch patch status lists; none means all"}
			}
			if asJSON {
				if err := writeJSON(c.OutOrStdout(), reverted); err != nil {
					return err
				}
			} else if err == nil || len(reverted.Drifted) > 0 {
				printReverted(c.OutOrStdout(), reverted)
			}
			if err != nil {
				return &exitError{exitPatch, err, driftHint(err)}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "for scripts")
	c.Flags().BoolVar(&force, "force", false, "bring the original back though somebody changed the file; FILE or NAME is needed")
	return c
}

// driftHint says how to get the original in spite of a drift.
func driftHint(err error) string {
	if errors.Is(err, patch.ErrDrifted) {
		return "sglaunch patch revert --force FILE brings the original back; what a file there holds now is kept"
	}
	return "sglaunch patch status tells where the originals are"
}

func printReverted(w io.Writer, r *patch.Reverted) {
	for _, list := range []struct {
		word  string
		paths []string
	}{
		{"restored", r.Restored}, {"was clean", r.Clean}, {"needed by a launch", r.Leased}, {"changed or removed by somebody, left alone", r.Drifted},
		{"what it held is kept in", r.Aside},
	} {
		for _, path := range list.paths {
			linef(w, "%s  %s", list.word, path)
		}
	}
	if len(r.Restored)+len(r.Clean)+len(r.Leased)+len(r.Drifted) == 0 {
		fmt.Fprintln(w, "nothing to revert")
	}
}
