package main

import "github.com/spf13/cobra"

// roomCommands are the commands that look into one room each, and those that
// speak to a launch that runs.
func roomCommands() []*cobra.Command {
	return []*cobra.Command{
		newExplainCommand(), newRulesCommand(), newHistoryCommand(), newPatchCommand(),
		newStatusCommand(), newStopCommand(), newRestartCommand(), newReloadCommand(), newUpgradeCommand(), newAttachCommand(),
		newUnitCommand(), newTuneCommand(),
	}
}
