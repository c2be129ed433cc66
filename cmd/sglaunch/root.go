package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sglaunch/internal/config"
	"sglaunch/internal/visible"
	"sglaunch/supervisor/machine"
)

// Exit codes: an interface to service managers and schedulers, see README. Those of
// a launch are the machine's.
const (
	exitOK      = machine.CodeStopped
	exitFailed  = 1 // of the command itself, whatever became of a launch
	exitLater   = machine.CodeLater
	exitNever   = machine.CodeNever
	exitPatch   = machine.CodePatch
	exitHeld    = machine.CodeHeld
	exitRunning = 14 // already running
	exitUsage   = 64
	exitConfig  = 78
)

// exitError carries an exit code, and a hint that is printed on a line of its own.
type exitError struct {
	code int
	err  error
	hint string
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// quietExit ends with a code and prints nothing more.
type quietExit int

func (q quietExit) Error() string { return fmt.Sprintf("exit status %d", int(q)) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sglaunch",
		Short: "Launch SGLang and keep it served",
		Long: `sglaunch starts an SGLang server in place of the raw command. It knows the
phase, the ranks and the progress, tells slow from stuck, names the root cause
of a failure, ends everything that belongs to it, undoes source patches, and
tries again in a way that has a chance.`,
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand( // a launch, and those that speak to one that runs
		newRunCommand(), newCheckCommand(), newUnitCommand(), newRecoverCommand(),
		newStatusCommand(), newAttachCommand(), newStopCommand(), newRestartCommand(), newReloadCommand(), newUpgradeCommand(),
	)
	root.AddCommand( // those that look into one room each
		newExplainCommand(), newRulesCommand(), newPatchCommand(), newHistoryCommand(), newReplayCommand(),
		newTuneCommand(), newRehearseCommand(), newVersionCommand(),
	)
	root.AddCommand(newSupervisorCommand(), newSamplerCommand(), newHandedCommand(), newDocsCommand()) // hidden
	root.SetVersionTemplate(versionText())
	root.Flags().Bool("version", false, "what the command version says")
	setUsage(root)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &exitError{exitUsage, err, flagHint(c, err)}
	})
	return root
}

// flagHint names the flags that may have been meant, or where all are listed.
func flagHint(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedName()
		var known, meant []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
			if strings.HasSuffix(f.Name, "."+name) { // a key without its section
				meant = append(meant, "--"+f.Name)
			}
		})
		if near := config.Nearest(name, known); near != "" {
			meant = []string{"--" + near}
		}
		if len(meant) > 0 {
			return "did you mean " + strings.Join(meant, " or ") + "?"
		}
	}
	return c.CommandPath() + " --help lists the flags"
}

// execute runs one command line and returns the exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	out := &output{to: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	checkWords(root)
	err := out.unwritten(stderr, root.Execute())
	if err == nil {
		return exitOK
	}
	var quiet quietExit
	if errors.As(err, &quiet) {
		return int(quiet)
	}
	printError(stderr, err)
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case isConfigError(err):
		return exitConfig
	}
	return exitFailed
}

func printError(w io.Writer, err error) {
	var list config.Errors
	if errors.As(err, &list) {
		for _, e := range list {
			complain(w, e.Error(), e.Hint)
		}
		return
	}
	var exit *exitError
	hint := ""
	if errors.As(err, &exit) {
		hint = exit.hint
	}
	complain(w, err.Error(), hint)
}

// complain tells what is wrong, on lines of our own. The words may be a server's, a
// client's or a file's: what they hold cannot be taken for another line of ours,
// nor be obeyed by a terminal.
func complain(w io.Writer, text, hint string) {
	first, rest, more := strings.Cut(text, "\n")
	fmt.Fprintf(w, "sglaunch: %s\n", visible.Line(first))
	if more {
		for line := range strings.SplitSeq(strings.TrimSuffix(rest, "\n"), "\n") {
			fmt.Fprintf(w, "  %s\n", visible.Line(line))
		}
	}
	if hint != "" {
		fmt.Fprintf(w, "sglaunch: hint: %s\n", visible.Line(hint))
	}
}

func isConfigError(err error) bool {
	var list config.Errors
	return errors.As(err, &list)
}
