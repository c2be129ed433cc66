package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
	"sglaunch/internal/tune/report"
)

// reports are the forms of a report.
var reports = map[string]func(io.Writer, tune.Summary) error{
	"markdown": report.Markdown, "csv": report.CSV, "html": report.HTML,
}

func newTuneReportCommand() *cobra.Command {
	var format, output string
	forms := strings.Join(slices.Sorted(maps.Keys(reports)), ", ")
	c := &cobra.Command{
		Use:   "report STUDY.toml",
		Short: "Show what the night of a study has found",
		Long: `Show what the night of a study has found, at any time: the winner and by how
much, what was not tried and why, each failure with its cause, the timeline, the
exact commands. The HTML page stands alone: it needs no network.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			write, ok := reports[format]
			if !ok {
				return &exitError{exitUsage, fmt.Errorf("cannot write a report as %q", format), "the forms are " + forms}
			}
			_, records, _, err := nightOf(args[0])
			if err != nil {
				return err
			}
			night, err := tune.Fold(records)
			if err != nil {
				return err
			}
			if output == "" {
				return write(c.OutOrStdout(), night.Summary())
			}
			var page bytes.Buffer
			if err := write(&page, night.Summary()); err != nil {
				return err
			}
			if err := statedir.Replace(output, page.Bytes()); err != nil {
				return fmt.Errorf("cannot write the report: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&format, "format", "markdown", forms)
	c.Flags().StringVarP(&output, "output", "o", "", "file to write; without it: standard output")
	return c
}
