package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newDocsCommand is for whoever packages sglaunch.
func newDocsCommand() *cobra.Command {
	var man string
	c := &cobra.Command{
		Use:    "docs",
		Short:  "Print the reference of all commands, or write man pages",
		Hidden: true,
		Long: `Print the reference of all commands in Markdown: docs/commands.md. With --man the
man pages are written into a folder instead:

  sglaunch docs --man /usr/local/share/man/man1`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if man == "" {
				return writeReference(c.OutOrStdout(), c.Root())
			}
			return writeManPages(man, c.Root())
		},
	}
	c.Flags().StringVar(&man, "man", "", "write man pages into this folder")
	return c
}

// writeManPages writes one page a command.
func writeManPages(folder string, root *cobra.Command) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of man pages: %w", err)
	}
	root.DisableAutoGenTag = true
	day := time.Unix(0, 0).UTC() // the same pages from the same program
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "sglaunch", Manual: "sglaunch", Date: &day}, folder); err != nil {
		return fmt.Errorf("cannot write the man pages: %w", err)
	}
	return nil
}

const referenceHead = `# Commands

What ` + "`--help`" + ` says, in one page. It is printed by ` + "`sglaunch docs`" + `, and a test holds
it against the program. ` + "`sglaunch docs --man DIR`" + ` writes man pages;
` + "`sglaunch completion SHELL`" + ` prints a completion that knows the names of launches that
run. Exit codes are in the README.
`

// writeReference writes every command that a person may type.
func writeReference(w io.Writer, root *cobra.Command) error {
	var b strings.Builder
	b.WriteString(referenceHead)
	eachCommand(root, func(c *cobra.Command) {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n```text\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
		if c.Long != "" {
			fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(c.Long))
		}
		usage, _, keys := strings.Cut(strings.TrimSpace(c.UsageString()), keysTitle)
		b.WriteString(usage)
		if keys {
			b.WriteString("and each key of launch.toml.example, as in --relaunch.attempts=3")
		}
		b.WriteString("\n```\n")
	})
	_, err := io.WriteString(w, b.String())
	return err
}

// eachCommand visits the commands that help shows, in its order.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		visit(sub)
		eachCommand(sub, visit)
	}
}
