package sglangcmd

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Form is how a command starts the server.
type Form string

// The forms.
const (
	Unknown Form = ""       // not recognisably SGLang
	Module  Form = "module" // python -m sglang.launch_server
	Serve   Form = "serve"  // sglang serve
	Script  Form = "script" // python …/sglang/launch_server.py
)

// Command is a command line as far as it can be read without running it.
type Command struct {
	Form   Form
	Python string   // the interpreter's word in the command; "" where it names none
	Args   []string // the server's own arguments, --config file included
	Env    []string // the environment the server starts with: the given one and what the command adds
	Notes  []string // what could not be read, for a person
}

// SGLang tells whether the command starts an SGLang server.
func (c Command) SGLang() bool { return c.Form != Unknown }

// Getenv returns a variable of the server's environment; the last one counts,
// as it does for exec.
func (c Command) Getenv(name string) (value string, ok bool) {
	for _, kv := range slices.Backward(c.Env) {
		if k, v, found := strings.Cut(kv, "="); found && k == name {
			return v, true
		}
	}
	return "", false
}

// Parse reads a command that will be started in dir with env. Relative paths
// of a script or a --config file count from dir.
func Parse(argv, env []string, dir string) Command {
	p := parser{dir: dir, env: slices.Clone(env)}
	c, ok := p.find(argv)
	if !ok {
		c = Command{}
	}
	c.Env = p.env
	c.Notes = p.notes
	if c.SGLang() {
		c.Args = p.withConfig(c.Args)
		c.Notes = p.notes
	}
	return c
}

// pythonName matches an interpreter's file name.
var pythonName = regexp.MustCompile(`^(python|pypy)[0-9.]*[a-z]?$`)

// serverModules are what python -m starts a server with.
var serverModules = []string{
	"sglang.launch_server",
	"sglang.srt.entrypoints.http_server",
}

// parser looks for the server in a command; what it passes on the way is kept.
type parser struct {
	dir   string
	env   []string
	notes []string
	depth int // of shells in shells
}

func (p *parser) find(argv []string) (Command, bool) {
	for i, word := range argv {
		rest := argv[i+1:]
		switch base := filepath.Base(word); {
		case pythonName.MatchString(base):
			if c, ok := python(word, rest); ok {
				return c, true
			}
		case base == "sglang" && len(rest) > 0 && rest[0] == "serve":
			return Command{Form: Serve, Args: rest[1:]}, true
		case (word == "-m" || word == "--module") && len(rest) > 0 && slices.Contains(serverModules, rest[0]):
			return Command{Form: Module, Args: rest[1:]}, true
		case base == "env":
			p.assignments(rest)
		}
	}
	return Command{}, false
}

// python reads what follows an interpreter: its own options, then -m MODULE or
// a script.
func python(word string, rest []string) (Command, bool) {
	for i := 0; i < len(rest); i++ {
		arg := rest[i]
		after := rest[i+1:]
		switch {
		case arg == "-m" && len(after) > 0:
			return module(word, after[0], after[1:])
		case strings.HasPrefix(arg, "-m") && len(arg) > 2:
			return module(word, arg[2:], after)
		case arg == "-W" || arg == "-X" || arg == "--check-hash-based-pycs":
			i++
		case strings.HasPrefix(arg, "-"):
			if strings.HasPrefix(arg, "-c") {
				return Command{}, false
			}
		default:
			return script(word, arg, after)
		}
	}
	return Command{}, false
}

func module(python, name string, args []string) (Command, bool) {
	if slices.Contains(serverModules, name) {
		return Command{Form: Module, Python: python, Args: args}, true
	}
	if name == "sglang.cli.main" && len(args) > 0 && args[0] == "serve" {
		return Command{Form: Serve, Python: python, Args: args[1:]}, true
	}
	return Command{}, false
}

func script(python, path string, args []string) (Command, bool) {
	switch {
	case strings.HasSuffix(path, "sglang/launch_server.py"):
		return Command{Form: Script, Python: python, Args: args}, true
	case filepath.Base(path) == "sglang" && len(args) > 0 && args[0] == "serve":
		return Command{Form: Serve, Python: python, Args: args[1:]}, true
	}
	return Command{}, false
}

// assignments takes the NAME=VALUE words that follow env.
func (p *parser) assignments(words []string) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch name, _, ok := strings.Cut(word, "="); {
		case word == "-u" || word == "--unset":
			if i++; i < len(words) {
				p.unset(words[i])
			}
		case strings.HasPrefix(word, "--unset="):
			p.unset(strings.TrimPrefix(word, "--unset="))
		case word == "-i" || word == "-" || word == "--ignore-environment":
			p.env = nil
		case word == "-C" || word == "--chdir":
			if i++; i < len(words) {
				p.chdir(words[i])
			}
		case strings.HasPrefix(word, "-"):
		case ok && name != "":
			p.env = append(p.env, word)
		default:
			return
		}
	}
}

func (p *parser) unset(name string) {
	p.env = slices.DeleteFunc(p.env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

func (p *parser) chdir(dir string) {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(p.dir, dir)
	}
	p.dir = dir
}

func (p *parser) withConfig(args []string) []string { return args }
