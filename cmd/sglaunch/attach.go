package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sglaunch/internal/proc"
	"sglaunch/internal/serve"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor"
)

func newAttachCommand() *cobra.Command {
	var lines int
	var all bool
	c := &cobra.Command{
		Use:   "attach [NAME]",
		Short: "Follow the output of a launch that runs; Ctrl-C detaches",
		Long: `Follow a launch as if it had been started here: the server's output on standard
output, from its raw log, sglaunch's own lines on standard error. Over the server's
next attempts it goes on. Nothing is taken from the launch, and what you type does
not reach the server.

Ctrl-C detaches; the launch goes on. Where the launch ends, attach ends with its
exit code.`,
		Args:              oneName,
		ValidArgsFunction: completeNames,
		RunE: func(c *cobra.Command, args []string) error {
			if lines < 0 {
				return &exitError{exitUsage, fmt.Errorf("cannot show %d lines: at least 0", lines), ""}
			}
			l, err := theOne(args)
			if err != nil {
				return err
			}
			if all {
				lines = -1
			}
			return attach(c.Context(), l, lines, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().IntVarP(&lines, "lines", "n", 20, "begin with the last so many lines")
	c.Flags().BoolVar(&all, "all", false, "begin with the attempt's first line")
	return c
}

// attach follows a launch until it ends or the person has seen enough.
func attach(ctx context.Context, l supervisor.Outside, lines int, stdout, stderr io.Writer) error {
	dir, err := statedir.OpenToAsk()
	if err != nil {
		return err
	}
	looking, cancel := context.WithTimeout(ctx, answerLimit)
	st, err := supervisor.Look(looking, dir, l)
	cancel()
	switch {
	case err != nil:
		return err
	case st.Dir == "":
		return fmt.Errorf("cannot attach to %q: its supervisor does not answer, and its records are not in this state directory", l.Name)
	}
	ctx, stop := untilUnread(ctx, stdout)
	defer stop()
	v := viewer{folder: statedir.Launch{ID: st.ID, Path: st.Dir}, lines: lines, stdout: stdout, stderr: stderr}
	defer v.close()
	told := make(chan string, 64)
	go tell(ctx, l, told)
	if err := v.follow(ctx, l.Shim, told); err != nil {
		return err
	}
	if ctx.Err() != nil {
		v.say(fmt.Sprintf("detached; %s goes on (sglaunch stop %s ends it)", l.Name, l.Name))
		return nil
	}
	return tellEnd(context.WithoutCancel(ctx), stderr, l.Name)
}

// tell passes sglaunch's own lines on, over every supervisor of the launch. That it
// cannot hear them is said once.
func tell(ctx context.Context, l supervisor.Outside, told chan<- string) {
	pass := func(text string) error {
		select {
		case told <- text:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var deaf bool
	for ctx.Err() == nil && proc.Alive(l.Shim) {
		err := serve.Watch(ctx, l.Socket, func(_ []byte, _ *serve.Status, e *serve.Envelope) error {
			if e == nil || e.Text == "" {
				return nil
			}
			return pass(e.Text)
		}) // it ends with the supervisor; the next one answers there again
		if err != nil && !errors.Is(err, serve.ErrNobody) && !deaf {
			deaf = true
			_ = pass(fmt.Sprintf("what sglaunch itself says is not shown here: %v", err))
		}
		select {
		case <-time.After(attachPoll):
		case <-ctx.Done():
		}
	}
}
