package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
	"sglaunch/internal/serve"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor"
)

func newStopCommand() *cobra.Command {
	var now, wait bool
	c := &cobra.Command{
		Use:   "stop [NAME]",
		Short: "Stop a launch: the server drains, everything ends, files are restored",
		Long: `Stop a launch as SIGTERM does: the server may drain, everything that belongs to
it ends, the GPU memory comes back, patched files are restored. Without NAME:
the launch that runs, if there is one. A launch whose supervisor does not answer
is stopped by signal.

With --wait the exit code is that of the launch, or 1 where no record of it is found.`,
		Args:              oneName,
		ValidArgsFunction: completeNames,
		RunE: func(c *cobra.Command, args []string) error {
			l, err := theOne(args)
			if err != nil {
				return err
			}
			if err := stopLaunch(c.Context(), c.OutOrStdout(), l, now); err != nil || !wait {
				return err
			}
			if err := proc.AwaitEnd(c.Context(), l.Shim); err != nil {
				return err
			}
			return tellEnd(c.Context(), c.OutOrStdout(), l.Name)
		},
	}
	c.Flags().BoolVar(&now, "now", false, "do not let the server drain")
	c.Flags().BoolVar(&wait, "wait", false, "return when everything has ended")
	return c
}

func newRestartCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restart [NAME]",
		Short: "Start the server of a launch anew, without counting a failure",
		Long: `End the server of a launch in order and start it anew at once: the same command,
patches applied again, all budgets fresh. A launch that waits before its next
attempt waits no longer. What launch.toml says is not read again.`,
		Args:              oneName,
		ValidArgsFunction: completeNames,
		RunE: func(c *cobra.Command, args []string) error {
			l, _, err := askFor(c.Context(), args, serve.DoRestart, answerLimit)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is being restarted\n", l.Name)
			return nil
		},
	}
}

// stopLaunch asks for the end; where nobody answers, the shim is told by a
// signal, which it minds without a supervisor, too.
func stopLaunch(ctx context.Context, w io.Writer, l supervisor.Outside, now bool) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	_, err := serve.Ask(ctx, l.Socket, serve.Request{Do: serve.DoStop, Force: now, By: "sglaunch stop"})
	if err == nil {
		fmt.Fprintf(w, "%s is being stopped\n", l.Name)
		return nil
	}
	ended := hasEnded(ctx, l)
	if err := proc.Send(l.Shim, unix.SIGTERM); err != nil {
		if errors.Is(err, proc.ErrGone) {
			return nil
		}
		return fmt.Errorf("cannot stop %q: cannot signal process %d: %w", l.Name, l.Shim.PID, err)
	}
	if ended {
		fmt.Fprintf(w, "%s has ended and waited for whoever reads its output, which SIGTERM to process %d cuts short\n", l.Name, l.Shim.PID)
		return nil
	}
	fmt.Fprintf(w, "%s does not answer; SIGTERM was sent to process %d\n", l.Name, l.Shim.PID)
	return nil
}

// hasEnded reports whether only the shim of a launch lives still, since the end was
// written down.
func hasEnded(ctx context.Context, l supervisor.Outside) bool {
	dir, err := statedir.OpenToAsk()
	if err != nil {
		return false
	}
	st, err := supervisor.Look(ctx, dir, l)
	return err == nil && st.State == serve.StateEnded
}

// tellEnd says how a launch has ended.
func tellEnd(ctx context.Context, w io.Writer, name string) error {
	dir, err := statedir.OpenToAsk()
	if err != nil {
		return err
	}
	st, err := supervisor.Look(ctx, dir, supervisor.Find(dir, name))
	switch {
	case errors.Is(err, supervisor.ErrNoLaunch) || errors.Is(err, fs.ErrNotExist):
		return &exitError{exitFailed, fmt.Errorf("%q has ended; how is not known here: %s holds no record of it", name, dir.State),
			"it was removed, or [log] directory is another; standard error of the launch tells it"}
	case err != nil:
		return err
	case st.Exit == nil:
		return fmt.Errorf("%q has ended; how was not written down", name)
	}
	fmt.Fprintf(w, "%s: %s\n", name, st.Line())
	if st.Exit.Code != exitOK {
		return quietExit(st.Exit.Code)
	}
	return nil
}
