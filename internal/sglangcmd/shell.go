package sglangcmd

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// shells are the programs whose scripts can be read.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "ash": true, "ksh": true, "zsh": true}

const (
	maxScript = 256 << 10 // bytes of a script that is read
	maxDepth  = 3         // of shells in shells
)

// unreadable stands for a word whose value only the shell can know. A flag
// with it counts as absent.
const unreadable = "\x00"

// shell reads what follows a shell: -c TEXT, or the path of a script.
func (p *parser) shell(name string, rest []string) (Command, bool) {
	for i, arg := range rest {
		switch {
		case strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c"):
			if i+1 < len(rest) {
				return p.text(name, rest[i+1], rest[min(i+3, len(rest)):])
			}
			return Command{}, false
		case strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "+"):
		case i > 0 && rest[i-1] == "-o":
		default:
			return p.file(name, arg, rest[i+1:])
		}
	}
	return Command{}, false
}

// script reads the first word of a command as a script, if it is one of a
// shell.
func (p *parser) script(word string, args []string) (Command, bool) {
	if !strings.Contains(word, "/") {
		return Command{}, false
	}
	name := interpreter(p.abs(word))
	if !shells[name] {
		return Command{}, false
	}
	return p.file(name, word, args)
}

// interpreter is the base name in a script's first line; "" where it has none.
func interpreter(path string) string {
	head, err := readBounded(path, 256)
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if err != nil || !bytes.HasPrefix(line, []byte("#!")) {
		return ""
	}
	words := strings.Fields(string(line[2:]))
	if len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	return filepath.Base(words[0])
}

// readBounded reads the beginning of a regular file. Anything else could block.
func readBounded(path string, limit int64) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot read %q: no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(bufio.NewReader(f), limit))
}

func (p *parser) file(name, path string, args []string) (Command, bool) {
	script, err := readBounded(p.abs(path), maxScript)
	if err != nil {
		p.note(err.Error())
		return Command{}, false
	}
	return p.text(name, string(script), args)
}

// text looks for the server in a script, which is read in its order: what it
// sets before counts, loops and conditions are taken as if they held.
func (p *parser) text(name, text string, args []string) (Command, bool) {
	if p.depth == maxDepth {
		return Command{}, false
	}
	p.depth++
	defer func() { p.depth-- }()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		p.note(fmt.Sprintf("cannot read the shell command: %v", err))
		return Command{}, false
	}
	w := walk{parser: p, vars: &variables{env: p.env, args: args}}
	syntax.Walk(file, w.visit)
	if w.found {
		w.command.Wrapper = name
	}
	return w.command, w.found
}

// walk goes through a script and stops at the server.
type walk struct {
	*parser
	vars    *variables
	command Command
	found   bool
}

func (w *walk) visit(node syntax.Node) bool {
	if w.found {
		return false
	}
	switch n := node.(type) {
	case *syntax.DeclClause:
		if n.Variant.Value == "export" || n.Variant.Value == "declare" || n.Variant.Value == "typeset" {
			for _, a := range n.Args {
				w.assign(a, true)
			}
		}
		return false
	case *syntax.CallExpr:
		w.call(n)
	}
	return true
}

// assign takes NAME=value of a script.
func (w *walk) assign(a *syntax.Assign, exported bool) {
	if a.Name == nil || a.Array != nil {
		return
	}
	name := a.Name.Value
	value, known := w.vars.lookup(name)
	if !a.Naked {
		value, known = w.literal(a.Value), true
	}
	if !known {
		return
	}
	w.vars.set(name, value)
	_, inherited := getenv(w.env, name)
	if (exported || inherited) && !strings.Contains(value, unreadable) {
		w.env = append(w.env, name+"="+value)
	}
}

// call looks at one simple command.
func (w *walk) call(n *syntax.CallExpr) {
	for _, a := range n.Assigns {
		w.assign(a, len(n.Args) > 0)
	}
	words := w.words(n.Args)
	switch {
	case len(words) == 0:
		return
	case words[0] == "cd" && len(words) == 2 && !strings.Contains(words[1], unreadable):
		w.chdir(words[1])
		return
	case words[0] == "exec":
		words = words[1:]
	}
	w.command, w.found = w.find(words)
}

// words expands the words of a command as the shell would. One that needs a
// command to be run, or that is too clever for this reader, is unreadable.
func (w *walk) words(words []*syntax.Word) []string {
	var fields []string
	for _, word := range words {
		got := []string{unreadable}
		if w.plain(word) {
			if expanded, err := expand.Fields(w.config(), word); err == nil {
				got = expanded
			}
		}
		fields = append(fields, got...)
	}
	return fields
}

func (w *walk) literal(word *syntax.Word) string {
	if word == nil {
		return ""
	}
	if w.plain(word) {
		if text, err := expand.Literal(w.config(), word); err == nil {
			return text
		}
	}
	return unreadable
}

// plain tells whether a word is made of text, quotes and $NAME or
// ${NAME:-text} alone. The expander stops with a panic at some of the rest, and
// a range of braces could make it grow without bound.
func (w *walk) plain(word *syntax.Word) bool {
	plain := true
	syntax.Walk(word, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Lit:
			plain = plain && !(strings.Contains(n.Value, "{") && strings.Contains(n.Value, ".."))
		case *syntax.ParamExp:
			plain = plain && simple(n)
		case nil, *syntax.Word, *syntax.SglQuoted, *syntax.DblQuoted:
		default:
			plain = false
		}
		return plain
	})
	if !plain {
		w.note("a word of the shell command cannot be known before it runs: " + source(word))
	}
	return plain
}

func simple(n *syntax.ParamExp) bool {
	if n.Excl || n.Length || n.Width || n.IsSet || n.Index != nil || n.Slice != nil || n.Repl != nil || n.Names != 0 || n.NestedParam != nil || n.Flags != nil {
		return false
	}
	return n.Exp == nil || n.Exp.Op == syntax.DefaultUnset || n.Exp.Op == syntax.DefaultUnsetOrNull
}

// source is the word as it stands in the script, shortened.
func source(word *syntax.Word) string {
	var text strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&text, word); err != nil {
		return "(unprintable)"
	}
	if s := text.String(); len(s) <= 60 {
		return s
	}
	return text.String()[:60] + "…"
}

func (w *walk) config() *expand.Config { return &expand.Config{Env: w.vars} }

// variables is what a script can look up.
type variables struct {
	env  []string
	args []string
}

func (v *variables) set(name, value string) { v.env = append(slices.Clip(v.env), name+"="+value) }

func (v *variables) lookup(name string) (string, bool) { return getenv(v.env, name) }

// Get implements expand.Environ; $@ and $1 are the script's arguments.
func (v *variables) Get(name string) expand.Variable {
	if name == "@" || name == "*" {
		return expand.Variable{Set: true, Kind: expand.Indexed, List: v.args}
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 1 && n <= len(v.args) {
			return expand.Variable{Set: true, Kind: expand.String, Str: v.args[n-1]}
		}
		return expand.Variable{}
	}
	value, ok := v.lookup(name)
	return expand.Variable{Set: ok, Exported: true, Kind: expand.String, Str: value}
}

// Each implements expand.Environ.
func (v *variables) Each(yield func(string, expand.Variable) bool) {
	for _, kv := range v.env {
		name, value, _ := strings.Cut(kv, "=")
		if !yield(name, expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: value}) {
			return
		}
	}
}
