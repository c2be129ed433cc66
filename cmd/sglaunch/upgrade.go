package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"sglaunch/internal/serve"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor"
	"sglaunch/supervisor/journal"
)

// upgradeLimit bounds the wait for the new supervisor: it folds the journal and
// reads the output again.
const upgradeLimit = time.Minute

func newUpgradeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "upgrade [NAME]",
		Short: "Let this program be the supervisor of a launch that runs",
		Long: `Replace the supervisor of a launch that runs by the program that this command is:
install a new sglaunch, then type "sglaunch upgrade NAME" with it. The server does
not notice. The shim, which owns the server, stays what it is until the launch
ends.

A new supervisor that dies within a minute is replaced by the one before. A
program that speaks another protocol is refused.`,
		Args:              oneName,
		ValidArgsFunction: completeNames,
		RunE: func(c *cobra.Command, args []string) error {
			l, err := theOne(args)
			if err != nil {
				return err
			}
			self, err := thisProgram()
			if err != nil {
				return err
			}
			return upgrade(c, l, self)
		},
	}
}

func upgrade(c *cobra.Command, l supervisor.Outside, program string) error {
	ctx, cancel := context.WithTimeout(c.Context(), upgradeLimit)
	defer cancel()
	before, err := serve.Ask(ctx, l.Socket, serve.Request{Do: serve.DoStatus})
	if err != nil {
		return fmt.Errorf("cannot upgrade %q: %w", l.Name, err)
	}
	if _, err := serve.Ask(ctx, l.Socket, serve.Request{
		Do: serve.DoUpgrade, By: "sglaunch upgrade", Program: program, Protocol: wire.Version, Journal: journal.Version,
	}); err != nil {
		return fmt.Errorf("cannot upgrade %q: %w", l.Name, err)
	}
	now, err := awaitSuccessor(ctx, l.Name, before.Processes.Supervisor)
	if err != nil {
		return err
	}
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", now)); err == nil && exe != program {
		return fmt.Errorf("cannot upgrade %q: the new supervisor died, and the one before is back as process %d; sglaunch status says more", l.Name, now)
	}
	fmt.Fprintf(c.OutOrStdout(), "%s is supervised by %s, process %d\n", l.Name, program, now)
	return nil
}

// awaitSuccessor waits until another supervisor than before answers.
func awaitSuccessor(ctx context.Context, name string, before int) (pid int, err error) {
	dir, err := statedir.OpenToAsk()
	if err != nil {
		return 0, err
	}
	for {
		l := supervisor.Find(dir, name)
		if st, err := serve.Ask(ctx, l.Socket, serve.Request{Do: serve.DoStatus}); err == nil && st.Processes.Supervisor != before {
			return st.Processes.Supervisor, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("cannot say whether %q is upgraded: no new supervisor answers within %s; sglaunch status %s says how it stands", name, upgradeLimit, name)
		case <-time.After(askAgain):
		}
	}
}
