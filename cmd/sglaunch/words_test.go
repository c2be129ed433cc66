package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A word that no command of a group knows is a mistake, and told as one, in
// every group; the group alone shows its help.
func TestUnknownCommandInEveryGroup(t *testing.T) {
	root := newRoot()
	checkWords(root)
	groups := 0
	everyCommand(root, func(c *cobra.Command) {
		if !c.HasSubCommands() {
			return
		}
		groups++
		path := strings.Fields(c.CommandPath())[1:]
		for _, args := range [][]string{append(path, "nope"), append([]string{"help"}, append(path, "nope")...)} {
			var out, errs bytes.Buffer
			if code := execute(args, &out, &errs); code != exitUsage || out.Len() > 0 || !strings.Contains(errs.String(), `cannot run "nope": `+c.CommandPath()+" has no such command\nsglaunch: hint: ") {
				t.Errorf("%q: exit code %d\n%s%s", args, code, &out, &errs)
			}
		}
		var out, errs bytes.Buffer
		if code := execute(path, &out, &errs); code != exitOK || !strings.Contains(out.String(), c.CommandPath()+" COMMAND\n") || errs.Len() > 0 {
			t.Errorf("%q: exit code %d\n%s%s", path, code, &out, &errs)
		}
	})
	if groups < 5 { // sglaunch itself, patch, rules, tune, completion
		t.Errorf("%d groups", groups)
	}
}

// No command lets cobra speak for it.
func TestArgumentsInOurWords(t *testing.T) {
	root := newRoot()
	checkWords(root)
	everyCommand(root, func(c *cobra.Command) {
		if c.HasSubCommands() || c.Args == nil {
			return
		}
		for n := range 4 {
			if err := c.Args(c, make([]string, n)); err != nil {
				if exit, ok := err.(*exitError); !ok || exit.code != exitUsage || exit.hint == "" {
					t.Errorf("%s with %d arguments: %v", c.CommandPath(), n, err)
				}
			}
		}
	})
}
