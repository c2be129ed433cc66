package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"sglaunch/internal/visible"
	"sglaunch/patch"
)

// palette writes text, in colour where the reader has colours.
type palette struct {
	w     io.Writer
	color bool
}

func newPalette(w io.Writer, mode string) palette {
	file, isFile := fileOf(w)
	auto := isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""
	return palette{w, mode == "always" || mode == "auto" && auto}
}

// linef writes one line that holds words of others: of a patch, a package, a path.
func linef(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, visible.Line(fmt.Sprintf(format, args...)))
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
	linef(out.w, "interpreter %s, Python %s", p.Interpreter.Python, p.Python)
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
			fmt.Fprintf(out.w, "\n%s cannot have an effect with this command: %s\n", out.paint(bold, visible.Line(resolved.Name)), visible.Line(why))
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
	fmt.Fprintf(out.w, "%s  %s  %s\n", out.paint(bold, visible.Line(t.Patch)), t.State, outcomeOf(out, t))
	row := func(name, format string, args ...any) {
		linef(out.w, "  %-9s %s", name, fmt.Sprintf(format, args...))
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

// printDiff shows what would change. A person decides by it: what cannot be seen
// in a file is written as its escape.
func printDiff(out palette, diff string) {
	for line := range strings.Lines(diff) {
		text := visible.Source(strings.TrimSuffix(line, "\n"))
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
		linef(w, "applied  %s", path)
	}
	_, err := fmt.Fprintln(w, "they stay until: sglaunch patch revert")
	return err
}
