package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
	"sglaunch/internal/serve"
	"sglaunch/supervisor"
)

// reloadLimit bounds a reload: launch.toml may lie on a file system that hangs.
const reloadLimit = 30 * time.Second

func newReloadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reload [NAME]",
		Short: "Read launch.toml again without touching the server",
		Long: `Read the launch.toml of a launch again. Limits, budgets, [stop], [hooks], [gpu]
samples and [log] keep count from now on; rules and [log] rotate with the next
attempt; what the server was started with (its command, environment, patches,
rungs, names and paths) only with a new launch. What has changed is listed by
these three. A file with a mistake changes nothing.

SIGHUP does the same where the launch belongs to no terminal, as does
systemctl reload. A launch that has no supervisor at the moment reads it as soon as
one is back.`,
		Args:              oneName,
		ValidArgsFunction: completeNames,
		RunE: func(c *cobra.Command, args []string) error {
			l, accepted, err := askFor(c.Context(), args, serve.DoReload, reloadLimit)
			switch {
			case errors.Is(err, serve.ErrNobody):
				return reloadLater(c.OutOrStdout(), l, err)
			case err != nil:
				return err
			}
			return printReloaded(c.OutOrStdout(), l.Name, accepted.Fields)
		},
	}
}

// reloadLater leaves the wish with the shim, which keeps it for the next supervisor,
// unless a hangup would mean something else to it.
func reloadLater(w io.Writer, l supervisor.Outside, nobody error) error {
	shim, err := proc.Identify(l.Shim.PID)
	switch {
	case err != nil:
		return nobody
	case shim.HasTTY:
		return &exitError{1, nobody, "ask again once sglaunch status shows a supervisor; a SIGHUP would stop this launch, since it belongs to a terminal"}
	case !proc.Catches(l.Shim.PID, unix.SIGHUP):
		return &exitError{1, nobody, "ask again once sglaunch status shows a supervisor; this launch ignores SIGHUP (nohup)"}
	}
	if err := proc.Send(l.Shim, unix.SIGHUP); err != nil {
		return fmt.Errorf("%w; cannot signal process %d: %w", nobody, l.Shim.PID, err)
	}
	_, err = fmt.Fprintf(w, "%s does not answer; SIGHUP was sent to process %d: launch.toml is read again as soon as a supervisor is back\n", l.Name, l.Shim.PID)
	return err
}

// printReloaded lists the keys that have changed by the moment from which they
// count.
func printReloaded(w io.Writer, name string, changed map[string]any) error {
	if len(changed) == 0 {
		_, err := fmt.Fprintf(w, "%s: nothing has changed\n", name)
		return err
	}
	fmt.Fprintf(w, "%s is reloaded\n", name)
	for _, part := range []struct{ field, title string }{
		{"now", "from now on"},
		{"next_attempt", "with the next attempt (sglaunch restart begins one)"},
		{"next_launch", "only with a new launch (stop it and run it again)"},
	} {
		keys, _ := changed[part.field].([]any)
		if len(keys) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s:\n", part.title)
		for _, key := range keys {
			fmt.Fprintf(w, "  %v\n", key)
		}
	}
	return nil
}
