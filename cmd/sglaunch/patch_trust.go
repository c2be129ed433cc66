package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sglaunch/internal/history"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor"
)

// historyLimit bounds what a command waits for the history.
const historyLimit = 5 * time.Second

func newPatchTrustCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "trust NAME",
		Short: "Use a patch again whose server gave wrong answers",
		Long: `Forget that a server with this patch gave wrong answers. A launch leaves such a
patch out on the GPUs and with the FlashInfer with which that was found; patch
plan says so. Once it is trusted the next launch uses it, and checks the answers
again.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			db, err := openHistory(c.Context())
			if err != nil {
				return err
			}
			n, err := db.ForgetWrong(c.Context(), args[0], "")
			if err := errors.Join(err, db.Close()); err != nil {
				return err
			}
			if n == 0 {
				return &exitError{exitFailed, fmt.Errorf("cannot trust %q again: nothing is known against a patch of that name", args[0]), "sglaunch patch plan names those that are left out"}
			}
			linef(c.OutOrStdout(), "%s is used again", args[0])
			return nil
		},
	}
}

func openHistory(ctx context.Context) (*history.DB, error) {
	dir, err := statedir.Open()
	if err != nil {
		return nil, err
	}
	return history.Open(ctx, dir.History())
}

// printWrong says which of the planned patches a launch would leave out: those
// whose server gave wrong answers. Which GPUs the launch will have is not known
// here, so they are named.
func printWrong(ctx context.Context, w io.Writer, r request) error {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	db, err := openHistory(ctx)
	if err != nil {
		return err
	}
	defer db.Close() // nothing was written
	marks, err := db.Wrong(ctx)
	if err != nil || len(marks) == 0 {
		return err
	}
	now := supervisor.FlashInfer(ctx, r.interpreter)
	for _, m := range marks {
		for _, p := range r.patches {
			if p.Label() == m.Patch && m.FlashInfer == now && m.Content == supervisor.PatchContent(p) {
				fmt.Fprintln(w)
				linef(w, "left out by a launch: %s", supervisor.TellWrong(m))
			}
		}
	}
	return nil
}
