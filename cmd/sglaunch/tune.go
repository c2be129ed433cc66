package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
	"sglaunch/internal/tune/conduct"
)

func newTuneCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "tune",
		Short: "Try settings of a server overnight, and have one serve in the morning",
		Long: `Try settings of a server, each on launches of its own, measure them with a bench
client, and have a server serve before a deadline: the base, or a winner that is
better beyond doubt.

  sglaunch tune plan tune.toml     what would be tried, and what the night can show
  sglaunch tune run tune.toml      do it, and serve; interrupted, it goes on where it was
  sglaunch tune status tune.toml   how far it is
  sglaunch tune report tune.toml   what was found`,
	}
	c.AddCommand(newTunePlanCommand(), newTuneRunCommand(), newTuneStatusCommand(), newTuneReportCommand())
	return c
}

// nightOf is the journal of a study, and whether somebody works on it.
func nightOf(path string) (name string, records []tune.Record, running bool, err error) {
	study, err := tune.Read(path)
	if err != nil {
		return "", nil, false, err
	}
	state, err := statedir.Open()
	if err != nil {
		return "", nil, false, err
	}
	dir, err := state.Study(study.Name)
	if err != nil {
		return "", nil, false, err
	}
	raw, err := conduct.ReadJournal(dir)
	if err != nil {
		return "", nil, false, err
	}
	if len(raw) == 0 {
		return "", nil, false, &exitError{exitFailed, fmt.Errorf("the study %q was never run", study.Name), "sglaunch tune run " + path}
	}
	records, err = conduct.Decode(raw)
	return study.Name, records, conduct.Running(dir), err
}
