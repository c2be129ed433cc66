package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sglaunch/supervisor/journal"
	"sglaunch/supervisor/machine"
)

func newReplayCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "replay JOURNAL",
		Short: "Show each decision of a launch again, by today's code",
		Long: `Give every event of a launch's journal.jsonl to a fresh state machine and show
what it decides. The launch's folder stands for the journal in it. The exit code
is 1 where today's code decides otherwise than the code that wrote the journal,
and where entries are missing: what follows them cannot be compared.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := openJournal(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			out := json.NewEncoder(c.OutOrStdout())
			differences, torn, err := journal.Replay(f, func(e journal.Entry, s machine.State) {
				if asJSON {
					_ = out.Encode(e)
					return
				}
				fmt.Fprint(c.OutOrStdout(), journal.Describe(e, s))
			})
			if err != nil {
				return err
			}
			if torn > 0 {
				fmt.Fprintf(c.ErrOrStderr(), "sglaunch: %d lines were torn by a sudden death and left out\n", torn)
			}
			for _, d := range differences {
				complain(c.ErrOrStderr(), fmt.Sprint(d), "")
			}
			if len(differences) > 0 {
				return quietExit(exitFailed)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a step")
	return c
}

// openJournal opens a journal, or the one in the folder of a launch.
func openJournal(path string) (*os.File, error) {
	info, err := os.Stat(path)
	folder := err == nil && info.IsDir()
	name := path
	if folder {
		name = filepath.Join(path, "journal.jsonl")
	}
	f, err := os.Open(name)
	switch {
	case folder && errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("cannot replay %q: it is a folder without a journal.jsonl", path)
	case err != nil:
		return nil, fmt.Errorf("cannot replay: %w", err)
	}
	return f, nil
}
