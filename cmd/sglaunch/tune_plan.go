package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sglaunch/internal/tune/conduct"
)

func newTunePlanCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plan STUDY.toml",
		Short: "Show what the night of a study would be, and what it can show",
		Long: `Show the trials of a study in their order, how many launches fit before its
deadline, and the smallest gain that so many can show. A plan that cannot answer
its question is refused, with the way out. The installed server is asked for its
flags; nothing else is started.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := tuneOptions(c, args[0])
			if err != nil {
				return err
			}
			p, err := conduct.Plan(c.Context(), o)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprint(c.OutOrStdout(), p.Text()); err != nil {
				return err
			}
			if len(p.Problems) > 0 {
				return &exitError{exitConfig, errors.New("this plan cannot answer its question"), "what is refused says how to mend it"}
			}
			return nil
		},
	}
}
