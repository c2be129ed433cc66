package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sglaunch/internal/config"
	"sglaunch/phases"
)

func newRulesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rules",
		Short: "List, test and try the rules that read the output",
		Long: `List, test and try the rules that give the lines of a server their meaning.
Rules are data: see docs/rules.md for how to add one's own.`,
	}
	c.AddCommand(newRulesListCommand(), newRulesTestCommand(), newRulesMatchCommand())
	return c
}

func newRulesListCommand() *cobra.Command {
	var file string
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the rules in the order in which they are tried",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			rules, err := loadRuleFile(file)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), rules.Rules())
			}
			return writeRules(c.OutOrStdout(), rules)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print every field as JSON")
	c.Flags().StringVar(&file, "rules", "", "a file of rules that stand before the built-in ones")
	return c
}

func writeRules(w io.Writer, rules *phases.RuleSet) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "id\tkind\tmeans\tversions\tfrom\tliteral")
	for _, r := range rules.Rules() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Kind, r.Meaning(), r.Versions(), r.Printer(), r.Lit)
	}
	return table.Flush()
}

func newRulesTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test [FILE]",
		Short: "Run the examples of the rules in FILE, or of the built-in ones",
		Long: `Run the examples of the rules in FILE, or of the built-in ones: each rule must
match its hits and none of its misses. The exit code is 1 where one does not.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			rules := phases.BuiltinRules()
			if len(args) == 1 {
				own, err := config.ReadRules(args[0])
				if err != nil {
					return err
				}
				rules = own
			}
			return testRules(c.OutOrStdout(), rules)
		},
	}
}

func testRules(w io.Writer, rules *phases.RuleSet) error {
	examples, broken := 0, 0
	for _, r := range rules.Rules() {
		examples += len(r.Hits) + len(r.Misses)
		for _, problem := range r.Check() {
			broken++
			fmt.Fprintf(w, "%s: %s\n", r.ID, problem)
		}
	}
	fmt.Fprintf(w, "%d rules, %d examples, %d wrong\n", len(rules.Rules()), examples, broken)
	if broken > 0 {
		return errors.New("cannot trust these rules: an example does not hold")
	}
	return nil
}

func newRulesMatchCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "match LINE",
		Short: "Show which rules match a line",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			rules, err := loadRuleFile(file)
			if err != nil {
				return err
			}
			ids := rules.Match([]byte(args[0]))
			if len(ids) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "no rule matches")
			}
			for _, id := range ids {
				r, _ := rules.Rule(id)
				fmt.Fprintf(c.OutOrStdout(), "%s  %s  %s  (%s)\n", r.ID, r.Kind, r.Meaning(), r.File)
			}
			return nil
		},
	}
	c.Flags().StringVar(&file, "rules", "", "a file of rules that stand before the built-in ones")
	return c
}
