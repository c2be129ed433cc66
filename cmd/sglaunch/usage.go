package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sglaunch/internal/config"
)

// usageTemplate is cobra's, with the keys of launch.toml apart from what a
// command is mostly called with.
const usageTemplate = `Usage:
{{- if not .HasAvailableSubCommands}}
  {{.UseLine}}{{else}}
  {{.CommandPath}} COMMAND

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{with ownFlags .}}

Flags:
{{.}}{{end}}{{with keyFlags .}}

` + keysTitle + `
{{.}}{{end}}{{if .HasAvailableSubCommands}}

"{{.CommandPath}} COMMAND --help" says more about a command.{{end}}
`

const keysTitle = "Keys of launch.toml, which any flag here beats:"

func setUsage(root *cobra.Command) {
	cobra.AddTemplateFunc("ownFlags", func(c *cobra.Command) string { return flagUsages(c, false) })
	cobra.AddTemplateFunc("keyFlags", func(c *cobra.Command) string { return flagUsages(c, true) })
	root.SetUsageTemplate(usageTemplate)
}

// flagUsages lists the flags of a command that are keys of launch.toml, or the
// others.
func flagUsages(c *cobra.Command, keys bool) string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if config.IsKey(f) == keys {
			set.AddFlag(f)
		}
	})
	return strings.TrimRight(set.FlagUsages(), "\n")
}
