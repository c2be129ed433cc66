package patch

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A shell script is read, not run: assignments, cd, activate and exec are
// followed as far as their words are plain, and the command that starts the
// server is picked out. What depends on the output of other commands stays
// unknown, and the person is asked to name the interpreter.

// shellCommand reads the arguments of a shell: -c TEXT or a script file.
func (w walker) shellCommand(args []string) (Interpreter, error) {
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c"):
			if i+1 >= len(args) {
				return Interpreter{}, noPython("the shell's -c has no text")
			}
			return w.shell(strings.NewReader(args[i+1]), args[min(i+2, len(args)):])
		case arg == "-o" || strings.HasPrefix(arg, "-"):
		default:
			return w.shellFile(w.abs(arg), args[i:])
		}
	}
	return Interpreter{}, noPython("the shell has no script")
}

func (w walker) shellFile(path string, args []string) (Interpreter, error) {
	text, err := readBounded(path)
	if err != nil {
		return Interpreter{}, fmt.Errorf("cannot read the script: %w", err)
	}
	return w.shell(strings.NewReader(string(text)), args)
}

// script is a shell's state while it is read.
type script struct {
	walker
	vars  map[string]string // set and not exported
	args  []string          // $0, $1, ...
	found []started
}

// started is a command that ends in an interpreter.
type started struct {
	in   Interpreter
	argv []string
}

func (w walker) shell(text io.Reader, args []string) (Interpreter, error) {
	s := &script{walker: w, vars: map[string]string{}, args: args}
	// Statement by statement: what follows an exec need not even be shell, as in
	// the console scripts that pip writes for long paths.
	for stmt, err := range syntax.NewParser().StmtsSeq(text) {
		if err != nil || s.ctx.Err() != nil {
			break
		}
		if s.statement(stmt) {
			break
		}
	}
	return s.choose()
}

// choose takes the last command that names sglang, else the last of all: what
// comes before in such scripts installs and checks.
func (s *script) choose() (Interpreter, error) {
	for _, c := range slices.Backward(s.found) {
		if slices.ContainsFunc(c.argv, func(arg string) bool { return strings.Contains(arg, "sglang") }) {
			return c.in, nil
		}
	}
	if n := len(s.found); n > 0 {
		return s.found[n-1].in, nil
	}
	return Interpreter{}, noPython("the shell script starts no python that can be seen")
}

// statement follows one statement and all inside it, and reports an exec: what
// comes after it does not run.
func (s *script) statement(stmt *syntax.Stmt) (ended bool) {
	syntax.Walk(stmt, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.FuncDecl, *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.DeclClause:
			s.declare(n)
			return false
		case *syntax.CallExpr:
			if !ended {
				ended = s.call(n)
			}
			return false
		}
		return true
	})
	return ended
}

func (s *script) declare(n *syntax.DeclClause) {
	for _, a := range n.Args {
		if a.Name == nil {
			continue
		}
		value, ok := s.literal(a.Value)
		if a.Naked {
			value, ok = s.vars[a.Name.Value]
		}
		if !ok {
			continue
		}
		if n.Variant.Value == "export" {
			s.setenv(a.Name.Value, value)
		} else {
			s.vars[a.Name.Value] = value
		}
	}
}

func (s *script) call(n *syntax.CallExpr) (ended bool) {
	argv, ok := s.fields(n.Args)
	if len(n.Args) == 0 {
		for _, a := range n.Assigns {
			s.assign(a)
		}
		return false
	}
	if !ok || len(argv) == 0 {
		return false
	}
	switch argv[0] {
	case "cd":
		if len(argv) > 1 {
			s.dir = s.abs(argv[len(argv)-1])
		}
	case "source", ".":
		s.source(argv[1:])
	case "conda", "mamba", "micromamba":
		if len(argv) > 1 && argv[1] == "activate" {
			s.activate(argv[0], argv[2:])
			return false
		}
		s.consider(n, argv)
	case "echo", "printf", "which", "type", "hash", "test", "[", "kill", "pkill", "grep", "ls", "mkdir", "export", "unset", "set", "true", "false":
	default:
		s.consider(n, argv)
		return argv[0] == "exec" && len(argv) > 1
	}
	return false
}

// consider looks whether a command ends in an interpreter.
func (s *script) consider(n *syntax.CallExpr, argv []string) {
	inner := s.walker
	for _, a := range n.Assigns {
		if value, ok := s.literal(a.Value); ok && a.Name != nil {
			inner.setenv(a.Name.Value, value)
		}
	}
	if in, err := inner.command(argv); err == nil {
		s.found = append(s.found, started{in, argv})
	}
}

func (s *script) assign(a *syntax.Assign) {
	value, ok := s.literal(a.Value)
	if !ok || a.Name == nil {
		return
	}
	if _, exported := getenv(s.env, a.Name.Value); exported {
		s.setenv(a.Name.Value, value)
	} else {
		s.vars[a.Name.Value] = value
	}
}

// source follows the activate script of a venv or of conda; others are not read.
func (s *script) source(args []string) {
	if len(args) == 0 || filepath.Base(args[0]) != "activate" {
		return
	}
	prefix := filepath.Dir(filepath.Dir(s.abs(args[0])))
	if isFile(filepath.Join(prefix, "pyvenv.cfg")) {
		s.enter("VIRTUAL_ENV", prefix)
		return
	}
	s.activate(filepath.Join(prefix, "bin", "conda"), args[1:])
}

func (s *script) activate(conda string, args []string) {
	name := "base"
	if len(args) > 0 {
		name = args[len(args)-1]
	}
	prefix := s.abs(name)
	if !strings.Contains(name, "/") {
		var err error
		if prefix, err = s.condaNamed(conda, name); err != nil {
			return
		}
	}
	s.enter("CONDA_PREFIX", prefix)
}

func (s *script) literal(word *syntax.Word) (string, bool) {
	if word == nil {
		return "", true
	}
	text, err := expand.Literal(s.config(), word)
	return text, err == nil
}

func (s *script) fields(words []*syntax.Word) ([]string, bool) {
	fields, err := expand.Fields(s.config(), words...)
	return fields, err == nil
}

// config expands variables and tildes; command substitution stays unset, which
// makes it an error.
func (s *script) config() *expand.Config { return &expand.Config{Env: s} }

// Get and Each make a script the environment of its own words.
func (s *script) Get(name string) expand.Variable {
	switch name {
	case "@", "*":
		return expand.Variable{Set: true, Kind: expand.Indexed, List: s.args[min(1, len(s.args)):]}
	case "PWD":
		return expand.Variable{Set: true, Kind: expand.String, Str: s.dir}
	}
	if len(name) == 1 && name[0] >= '0' && name[0] <= '9' {
		if i := int(name[0] - '0'); i < len(s.args) {
			return expand.Variable{Set: true, Kind: expand.String, Str: s.args[i]}
		}
		return expand.Variable{}
	}
	if value, ok := s.vars[name]; ok {
		return expand.Variable{Set: true, Kind: expand.String, Str: value}
	}
	value, ok := getenv(s.env, name)
	return expand.Variable{Set: ok, Exported: ok, Kind: expand.String, Str: value}
}

// Each lists the exported variables.
func (s *script) Each(yield func(name string, v expand.Variable) bool) {
	for _, pair := range s.env {
		name, value, _ := strings.Cut(pair, "=")
		if !yield(name, expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: value}) {
			return
		}
	}
}

var _ expand.Environ = (*script)(nil)
