package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"sglaunch/internal/config"
)

// checkWords gives every command under root the same answer to words that it
// cannot use: 64, what is wrong, and what may have been meant. Cobra answers a
// mistyped command of a group with the help of the group, and success.
func checkWords(root *cobra.Command) {
	root.SetHelpCommand(newHelpCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	everyCommand(root, func(c *cobra.Command) {
		switch {
		case c.HasSubCommands():
			c.Args, c.RunE = cobra.ArbitraryArgs, showGroup
		case c.Args != nil:
			c.Args = inOurWords(c.Args)
		}
	})
}

// everyCommand visits a command and all below it, hidden ones too.
func everyCommand(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		everyCommand(sub, visit)
	}
}

// showGroup is what a group of commands does where none of them is named.
func showGroup(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(c, args[0])
	}
	return c.Help()
}

func unknownCommand(c *cobra.Command, word string) error {
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	hint := c.CommandPath() + " --help shows what there is"
	if near := config.Nearest(word, known); near != "" {
		hint = fmt.Sprintf("did you mean %s %s?", c.CommandPath(), near)
	}
	return &exitError{exitUsage, fmt.Errorf("cannot run %q: %s has no such command", word, c.CommandPath()), hint}
}

// inOurWords keeps what a check of arguments decides, and says it as everything
// else is said.
func inOurWords(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		err := check(c, args)
		var told *exitError
		if err == nil || errors.As(err, &told) {
			return err
		}
		err = fmt.Errorf("cannot run %s: it has an argument too many", c.CommandPath())
		if check(c, append(slices.Clone(args), "one more")) == nil {
			err = fmt.Errorf("cannot run %s: an argument is missing", c.CommandPath())
		}
		return &exitError{exitUsage, err, c.UseLine()}
	}
}

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Say more about a command",
		RunE: func(c *cobra.Command, args []string) error {
			asked, rest, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(asked, rest[0])
			}
			asked.InitDefaultHelpFlag() // so that it is listed
			return asked.Help()
		},
	}
}
