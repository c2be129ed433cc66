package main

import (
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"sglaunch/internal/tune/conduct"
)

func newTuneStatusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status STUDY.toml",
		Short: "Show how far the night of a study is",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name, records, running, err := nightOf(args[0])
			if err != nil {
				return err
			}
			st := conduct.StatusOf(name, records, running, time.Now())
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(st)
			}
			return st.Print(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "for scripts")
	return c
}
