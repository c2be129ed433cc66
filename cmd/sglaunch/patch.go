package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sglaunch/internal/proc"
	"sglaunch/patch"
)

func newPatchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "patch",
		Short: "Look at, apply and revert source patches",
		Long: `Look at, apply and revert the patches of a launch.toml, apart from a launch. A
launch applies and reverts its own patches; these commands show what it would
do, heal what it could not, and keep a patch in place for longer.`,
	}
	c.AddCommand(newPatchPlanCommand(), newPatchApplyCommand(), newPatchStatusCommand(), newPatchRevertCommand(), newPatchNewCommand(), newPatchTrustCommand())
	return c
}

func newPatchPlanCommand() *cobra.Command {
	var flags patchFlags
	c := &cobra.Command{
		Use:   "plan [-c launch.toml] [--use NAME] [-- command ...]",
		Short: "Show what a launch would change, and change nothing",
		Long: `Show for each file of each patch where the server's interpreter finds it, its
state, what would change, and what stands in the way. Nothing is written and the
package is not imported. The exit code is 0 where every patch can be used or is
not needed, else 12.`,
		Args: argsAfterDash,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := flags.read(c.Context(), args)
			if err != nil {
				return err
			}
			p, err := patch.MakePlan(c.Context(), r.ledger, r.interpreter, r.patches)
			if err != nil {
				return &exitError{exitPatch, err, ""}
			}
			if flags.json {
				err = writeJSON(c.OutOrStdout(), p)
			} else {
				err = printPlan(newPalette(c.OutOrStdout(), flags.color), p, r)
				if told := printWrong(c.Context(), c.OutOrStdout(), r); told != nil { // a plan is good without it
					complain(c.ErrOrStderr(), told.Error(), "")
				}
			}
			if err != nil {
				return err
			}
			if len(p.Refused()) > 0 {
				return quietExit(exitPatch)
			}
			return nil
		},
	}
	flags.register(c)
	return c
}

// handOwner is this process: its patches are kept, so that no later recovery
// takes them for left behind.
func handOwner() patch.Owner {
	pid := os.Getpid()
	start, _ := proc.StartTimeOf(pid) // 0 matches no process, which is what a kept patch needs
	return patch.Owner{PID: pid, StartTime: start, BootID: proc.BootID(), Launch: fmt.Sprintf("by-hand-%d", pid)}
}

func newPatchApplyCommand() *cobra.Command {
	var flags patchFlags
	c := &cobra.Command{
		Use:   "apply [-c launch.toml] [--use NAME] [-- command ...]",
		Short: "Put patches in place until they are reverted by hand",
		Long: `Put patches in place and leave them there until "sglaunch patch revert". A launch
needs no such step: it applies its patches before the server starts and takes
them back when the server is gone.`,
		Args: argsAfterDash,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := flags.read(c.Context(), args)
			if err != nil {
				return err
			}
			applied, err := applyByHand(c.Context(), r)
			if err != nil {
				return &exitError{exitPatch, err, "sglaunch patch plan shows each file"}
			}
			if flags.json {
				return writeJSON(c.OutOrStdout(), applied)
			}
			return printApplied(c.OutOrStdout(), applied)
		},
	}
	flags.register(c)
	return c
}

func applyByHand(ctx context.Context, r request) (*patch.Applied, error) {
	for i := range r.patches {
		if r.patches[i].Method == patch.MethodOverlay {
			return nil, fmt.Errorf("cannot apply patch %q by hand: an overlay is for one launch", r.patches[i].Label())
		}
		r.patches[i].Revert = patch.RevertNever
	}
	p, err := patch.MakePlan(ctx, r.ledger, r.interpreter, r.patches)
	if err != nil {
		return nil, err
	}
	owner := handOwner()
	applied, err := r.ledger.Apply(ctx, p, owner)
	if err != nil {
		return nil, err
	}
	_, err = r.ledger.Revert(ctx, owner.Launch) // gives up the lease; what is to be kept stays
	return applied, err
}
