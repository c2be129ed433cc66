package main

import "github.com/spf13/cobra"

// roomCommands are the commands that look into one room each.
func roomCommands() []*cobra.Command {
	return []*cobra.Command{newExplainCommand(), newRulesCommand(), newHistoryCommand(), newPatchCommand()}
}
