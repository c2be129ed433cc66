package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sglaunch/internal/proc"
	"sglaunch/internal/serve"
	"sglaunch/internal/statedir"
	"sglaunch/internal/view"
	"sglaunch/supervisor"
)

// answerLimit is how long a launch may take to answer before it is looked at
// from outside instead.
const answerLimit = 3 * time.Second

func newStatusCommand() *cobra.Command {
	var asJSON, watch bool
	c := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show how far a launch is",
		Long: `Show how far a launch is: phase, ranks, progress, the time it should still take,
GPUs, processes, how the attempt before failed. Without NAME: the launch that
runs, or a table where several do. A launch whose supervisor does not answer is
looked at from outside: which of shim, supervisor and server live. One that has
ended says how.

--watch follows it until it ends. --json is for scripts, one document a line.`,
		Args:              oneName,
		ValidArgsFunction: completeNames,
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := statedir.OpenToAsk()
			if err != nil {
				return err
			}
			launches, err := chosen(dir, args)
			switch {
			case err != nil:
				return err
			case watch && len(launches) > 1:
				return tooMany(launches)
			case watch && launches[0].Shim.PID != 0: // else there is nothing to follow
				return follow(c.Context(), c.OutOrStdout(), launches[0], asJSON)
			}
			return showStatus(c.Context(), c.OutOrStdout(), dir, launches, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "for scripts")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "follow it until it ends")
	return c
}

func showStatus(ctx context.Context, w io.Writer, dir statedir.Dir, launches []supervisor.Outside, asJSON bool) error {
	var all []serve.Status
	for _, l := range launches {
		ctx, cancel := context.WithTimeout(ctx, answerLimit)
		st, err := supervisor.Look(ctx, dir, l)
		cancel()
		if err != nil {
			return err
		}
		all = append(all, st)
	}
	switch {
	case asJSON:
		out := json.NewEncoder(w)
		for _, st := range all {
			if err := out.Encode(st); err != nil {
				return err
			}
		}
		return nil
	case len(all) == 1:
		return view.Status(w, all[0], time.Now())
	}
	return view.Table(w, all, time.Now())
}

// follow shows a launch until it ends or the person has seen enough. The end of a
// supervisor is not that of the launch: the next one answers at the same place.
func follow(ctx context.Context, w io.Writer, l supervisor.Outside, asJSON bool) error {
	ctx, stop := untilUnread(ctx, w)
	defer stop()
	var heard, ended bool
	tell := func(raw []byte, s *serve.Status, e *serve.Envelope) error {
		heard, ended = true, e != nil && e.Event == "launch_ended"
		switch {
		case asJSON:
			_, err := fmt.Fprintf(w, "%s\n", raw)
			return err
		case s != nil:
			return view.Status(w, *s, time.Now())
		}
		return view.News(w, *e)
	}
	for {
		err := serve.Watch(ctx, l.Socket, tell)
		switch {
		case ctx.Err() != nil:
			return nil
		case ended, !heard, err != nil && !errors.Is(err, serve.ErrNobody):
			return err
		case !proc.Alive(l.Shim):
			return nil
		}
		select {
		case <-time.After(attachPoll):
		case <-ctx.Done():
		}
	}
}
