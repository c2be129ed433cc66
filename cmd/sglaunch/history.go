package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sglaunch/internal/history"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor"
)

func newHistoryCommand() *cobra.Command {
	var asJSON bool
	var limit int
	c := &cobra.Command{
		Use:   "history [NAME|ID]",
		Short: "Show earlier launches: phases, outcomes, causes",
		Long: `Show the newest launches, or those of one name, one line each; with the ID of
a launch, all that is known of it. Times of phases are those of the newest
attempt that became ready. It may be asked while launches run.`,
		Args: oneName,
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 1 {
				return &exitError{exitUsage, fmt.Errorf("cannot show %d launches: at least 1", limit), ""}
			}
			dir, err := statedir.OpenToAsk()
			if err != nil {
				return err
			}
			db, err := history.OpenToRead(c.Context(), dir.History())
			if err != nil {
				return err
			}
			defer db.Close() // nothing was written
			if db.Aside != "" {
				fmt.Fprintf(c.ErrOrStderr(), "sglaunch: the history was damaged; it is kept as %s and begins anew\n", db.Aside)
			}
			launches, detail, err := findLaunches(c, db, append(args, "")[0], limit)
			if err != nil {
				return err
			}
			for i := range launches {
				launches[i].Killed = launches[i].Code == nil && wasKilled(dir, launches[i].ID)
			}
			return showLaunches(c.OutOrStdout(), launches, detail, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "for scripts: everything that is known")
	c.Flags().IntVarP(&limit, "number", "n", 20, "show so many launches, newest first")
	return c
}

// wasKilled tells whether sglaunch died without a word of how a launch ended.
func wasKilled(dir statedir.Dir, id string) bool {
	l, err := dir.OpenLaunch(id)
	return err == nil && supervisor.Killed(dir, l)
}

// findLaunches takes what as the ID of a launch, or else as a name.
func findLaunches(c *cobra.Command, db *history.DB, what string, limit int) (launches []history.Launch, detail bool, err error) {
	if what != "" {
		l, err := db.Launch(c.Context(), what)
		if err == nil {
			return []history.Launch{l}, true, nil
		}
		if !errors.Is(err, history.ErrUnknownLaunch) {
			return nil, false, err
		}
	}
	launches, err = db.Launches(c.Context(), what, limit)
	if err == nil && what != "" && len(launches) == 0 {
		err = &exitError{exitFailed, fmt.Errorf("cannot find a launch %q: no launch has that name or id", what), "sglaunch history lists them all"}
	}
	return launches, false, err
}

func showLaunches(w io.Writer, launches []history.Launch, detail, asJSON bool) error {
	switch {
	case asJSON:
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(struct {
			V        int              `json:"v"`
			Time     time.Time        `json:"time"`
			Launches []history.Launch `json:"launches"`
		}{1, time.Now().UTC(), append([]history.Launch{}, launches...)})
	case detail:
		return history.WriteDetail(w, launches[0])
	case len(launches) == 0:
		_, err := fmt.Fprintln(w, "no launch is recorded yet")
		return err
	}
	return history.WriteTable(w, launches)
}
