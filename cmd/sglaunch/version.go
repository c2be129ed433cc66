package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"sglaunch/internal/shim/wire"
	"sglaunch/supervisor/journal"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program and of what it speaks",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), versionText())
			return err
		},
	}
}

func versionText() string {
	return fmt.Sprintf("sglaunch %s (%s, %s/%s)\nshim protocol %d, journal %d\n",
		buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH, wire.Version, journal.Version)
}

// buildVersion is what the Go toolchain recorded: a tag, or the commit.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown origin"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			version = "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	if version == "" {
		version = "(devel)"
	}
	return version
}
