package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sglaunch/internal/serve"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor"
)

// oneName accepts the NAME of a launch, or none. An empty one is a variable that
// nobody has set: taken for none it would mean a launch that nobody named.
func oneName(c *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] == "" {
		return &exitError{exitUsage, fmt.Errorf("cannot run %s: the name is empty", c.CommandPath()), c.UseLine()}
	}
	return cobra.MaximumNArgs(1)(c, args)
}

// chosen are the launches that the words mean: the named one, or all that live.
func chosen(dir statedir.Dir, args []string) ([]supervisor.Outside, error) {
	if len(args) == 1 {
		return []supervisor.Outside{supervisor.Find(dir, args[0])}, nil
	}
	living, err := supervisor.Living(dir)
	if err == nil && len(living) == 0 {
		err = &exitError{exitFailed, errors.New("no launch is running"), "sglaunch history shows earlier ones, sglaunch status NAME how one ended"}
	}
	return living, err
}

// theOne is the living launch that the words mean.
func theOne(args []string) (supervisor.Outside, error) {
	dir, err := statedir.OpenToAsk()
	if err != nil {
		return supervisor.Outside{}, err
	}
	launches, err := chosen(dir, args)
	switch {
	case err != nil:
		return supervisor.Outside{}, err
	case len(launches) > 1:
		return supervisor.Outside{}, tooMany(launches)
	case launches[0].Shim.PID == 0:
		return supervisor.Outside{}, &exitError{exitFailed, fmt.Errorf("no launch %q is running", launches[0].Name), "sglaunch status lists those that are"}
	}
	return launches[0], nil
}

func tooMany(launches []supervisor.Outside) error {
	var names []string
	for _, l := range launches {
		names = append(names, l.Name)
	}
	return &exitError{exitUsage, fmt.Errorf("cannot choose: %d launches are running: %q", len(names), names), "give the name of one"}
}

// askAgain is how long a launch that does not answer yet is left alone.
const askAgain = 200 * time.Millisecond

// askFor has the launch that the words mean do something, and returns what it
// has to tell about that.
func askFor(ctx context.Context, args []string, do string, limit time.Duration) (supervisor.Outside, *serve.Envelope, error) {
	l, err := theOne(args)
	if err != nil {
		return l, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, accepted, err := serve.Say(ctx, l.Socket, serve.Request{Do: do, By: "sglaunch " + do})
	if err != nil {
		return l, nil, fmt.Errorf("cannot %s %q: %w", do, l.Name, err)
	}
	return l, accepted, nil
}

// completeNames completes the names of launches that run.
func completeNames(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	dir, err := statedir.OpenToAsk()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	living, err := chosen(dir, nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, l := range living {
		names = append(names, l.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
