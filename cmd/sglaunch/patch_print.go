package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sglaunch/internal/proc"
	"sglaunch/patch"
)

// palette writes text, in colour where the reader has colours.
type palette struct {
	w     io.Writer
	color bool
}

func newPalette(w io.Writer, mode string) palette {
	file, isFile := w.(*os.File)
	auto := isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""
	return palette{w, mode == "always" || mode == "auto" && auto}
}

const (
	bold  = "1"
	red   = "31"
	green = "32"
	cyan  = "36"
)

func (p palette) paint(code, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}

func printPlan(out palette, p *patch.Plan, r request) error {
	fmt.Fprintf(out.w, "interpreter %s, Python %s\n", p.Interpreter.Python, p.Python)
	for _, t := range p.Targets {
		fmt.Fprintln(out.w)
		printTarget(out, t)
	}
	for _, raw := range r.patches {
		resolved, err := raw.Resolved()
		if err != nil || len(r.argv) == 0 {
			continue
		}
		if why := resolved.Unmet(r.argv); why != "" {
			fmt.Fprintf(out.w, "\n%s cannot have an effect with this command: %s\n", out.paint(bold, resolved.Name), why)
		}
	}
	return nil
}

// outcomeOf says in a word what a launch would do with a target.
func outcomeOf(out palette, t patch.Target) string {
	switch {
	case t.Refused && t.OnRefused == patch.RefusedUnpatched:
		return out.paint(red, "refused, the launch runs without it")
	case t.Refused:
		return out.paint(red, "refused")
	case t.State == patch.Pristine:
		return out.paint(green, "would be applied")
	}
	return "nothing to do"
}

func printTarget(out palette, t patch.Target) {
	fmt.Fprintf(out.w, "%s  %s  %s\n", out.paint(bold, t.Patch), t.State, outcomeOf(out, t))
	row := func(name, format string, args ...any) {
		fmt.Fprintf(out.w, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	if t.Path != "" {
		row("file", "%s", t.Path)
	}
	if t.Version != "" {
		row("release", "%s %s%s", t.Package, t.Version, variantOf(t))
	}
	row("reason", "%s", t.Reason)
	if t.Hint != "" {
		row("hint", "%s", t.Hint)
	}
	if t.Before != "" {
		row("sha256", "%s", t.Before)
		if t.After != "" && t.After != t.Before {
			row("", "%s after", t.After)
		}
		f := t.File
		row("inode", "%s %d:%d, %d links, on %s, %s; bytecode %s", f.Mode, f.UID, f.GID, f.Links, f.FS, f.ModTime.UTC().Format("2006-01-02 15:04:05"), t.Bytecode)
	}
	for _, note := range t.Notes {
		row("note", "%s", note)
	}
	printDiff(out, t.Diff)
}

func variantOf(t patch.Target) string {
	if t.Variant == 0 {
		return ""
	}
	return fmt.Sprintf(", variant %d", t.Variant)
}

func printDiff(out palette, diff string) {
	for line := range strings.Lines(diff) {
		text := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(text, "+++"), strings.HasPrefix(text, "---"):
			text = out.paint(bold, text)
		case strings.HasPrefix(text, "+"):
			text = out.paint(green, text)
		case strings.HasPrefix(text, "-"):
			text = out.paint(red, text)
		case strings.HasPrefix(text, "@@"):
			text = out.paint(cyan, text)
		}
		fmt.Fprintf(out.w, "    %s\n", text)
	}
}

func printApplied(w io.Writer, a *patch.Applied) error {
	if len(a.Files) == 0 {
		_, err := fmt.Fprintln(w, "nothing to apply")
		return err
	}
	for _, path := range a.Files {
		fmt.Fprintf(w, "applied  %s\n", path)
	}
	_, err := fmt.Fprintln(w, "they stay until: sglaunch patch revert")
	return err
}

func newPatchStatusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "List the files that hold a patch, and who needs it",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			ledger, err := openLedger()
			if err != nil {
				return err
			}
			held, err := ledger.Status()
			if err != nil {
				return &exitError{exitPatch, err, ""}
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), append([]patch.Held{}, held...))
			}
			return printHeld(c.OutOrStdout(), held)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "for scripts")
	return c
}

func printHeld(w io.Writer, held []patch.Held) error {
	if len(held) == 0 {
		_, err := fmt.Fprintln(w, "no file holds a patch")
		return err
	}
	for _, h := range held {
		fmt.Fprintf(w, "%-8s %s\n", h.State, h.Path)
		if len(h.Patches) > 0 {
			fmt.Fprintf(w, "         patches   %s\n", strings.Join(h.Patches, ", "))
		}
		for _, o := range h.Launches {
			fmt.Fprintf(w, "         needed by %s%s\n", o.Launch, lifeOf(o))
		}
		if h.Kept {
			fmt.Fprintf(w, "         kept until it is reverted by hand\n")
		}
		if h.State == patch.Drifted {
			fmt.Fprintf(w, "         somebody changed it; the original is kept in %s\n", h.Original)
		}
	}
	return nil
}

func lifeOf(o patch.Owner) string {
	if alive(o) {
		return fmt.Sprintf(" (process %d)", o.PID)
	}
	return ", which is dead: sglaunch recover restores the file"
}

func alive(o patch.Owner) bool {
	return o.BootID == proc.BootID() && proc.Alive(proc.ID{PID: o.PID, Start: o.StartTime})
}

func newPatchRevertCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "revert",
		Short: "Restore files whose patch was to be kept",
		Long: `Restore the files that hold a patch which no launch takes back: applied by hand,
or with revert = "never". Files that a launch needs are left to it; files of a
dead launch are restored by "sglaunch recover", which first ends what is left of
it. The exit code is 12 where somebody has changed a file: it is left alone.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			ledger, err := openLedger()
			if err != nil {
				return err
			}
			reverted, err := ledger.RevertKept(c.Context())
			if asJSON {
				if err := writeJSON(c.OutOrStdout(), reverted); err != nil {
					return err
				}
			} else {
				printReverted(c.OutOrStdout(), reverted)
			}
			if err != nil {
				return &exitError{exitPatch, err, "sglaunch patch status tells where the originals are"}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "for scripts")
	return c
}

func printReverted(w io.Writer, r *patch.Reverted) {
	for _, list := range []struct {
		word  string
		paths []string
	}{
		{"restored", r.Restored}, {"was clean", r.Clean}, {"needed by a launch", r.Leased}, {"changed by somebody, left alone", r.Drifted},
	} {
		for _, path := range list.paths {
			fmt.Fprintf(w, "%s  %s\n", list.word, path)
		}
	}
	if len(r.Restored)+len(r.Clean)+len(r.Leased)+len(r.Drifted) == 0 {
		fmt.Fprintln(w, "nothing to revert")
	}
}
