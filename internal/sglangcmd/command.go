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
	Form    Form
	Program string   // the word that is executed for the server: an interpreter, or the sglang program
	Python  string   // the interpreter's word; "" where the command names none
	Wrapper string   // what runs before it and may choose another environment for it (uv, conda, sh); "" = nothing
	Args    []string // the server's own arguments, --config file included
	Env     []string // the environment the server starts with: the given one and what the command adds
	Dir     string   // where the server starts
	Notes   []string // what could not be read, for a person

	positional string // the first argument, where it is no flag
}

// SGLang tells whether the command starts an SGLang server.
func (c Command) SGLang() bool { return c.Form != Unknown }

// Getenv returns a variable of the server's environment; the last one counts,
// as it does for exec.
func (c Command) Getenv(name string) (value string, ok bool) { return getenv(c.Env, name) }

func getenv(env []string, name string) (value string, ok bool) {
	for _, kv := range slices.Backward(env) {
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
	c, _ := p.find(argv)
	if len(c.Args) > 0 && !strings.HasPrefix(c.Args[0], "-") {
		c.positional = c.Args[0]
	}
	if c.SGLang() {
		c.Args = p.withConfig(c.Args)
	}
	c.Env, c.Dir, c.Notes = p.env, p.dir, p.notes
	return c
}

// serverModules are what python -m starts a server with.
var serverModules = []string{
	"sglang.launch_server",
	"sglang.srt.entrypoints.http_server",
}

// pythonName matches an interpreter's file name.
var pythonName = regexp.MustCompile(`^(python|pypy)[0-9.]*[a-z]?$`)

// transparent wrappers run the command in the environment that they were given.
var transparent = []string{
	"env", "exec", "nice", "ionice", "numactl", "taskset", "chrt", "stdbuf",
	"setsid", "nohup", "time", "timeout", "prlimit", "nsys", "ncu", "gdb",
	"strace", "catchsegv", "systemd-inhibit", "tini", "dumb-init", "catatonit",
}

// parser looks for the server in a command; what it passes on the way is kept.
type parser struct {
	dir   string
	env   []string
	notes []string
	depth int // of shells in shells
}

func (p *parser) note(text string) {
	if !slices.Contains(p.notes, text) {
		p.notes = append(p.notes, text)
	}
}

// find looks for the server among the words of one command.
func (p *parser) find(argv []string) (Command, bool) {
	wrapper, interpreted := "", false
	for i, word := range argv {
		c, ok := p.at(word, argv[i+1:], i == 0)
		if interpreted && c.Program == "" {
			ok = false // the -m of another program's arguments
		}
		if ok {
			if c.Wrapper == "" {
				c.Wrapper = wrapper
			}
			return c, true
		}
		interpreted = interpreted || pythonName.MatchString(filepath.Base(word))
		if base := filepath.Base(word); i == 0 && !slices.Contains(transparent, base) && !assignment(word) {
			wrapper = base
		}
	}
	return Command{}, false
}

// at tells whether the server's command begins with this word.
func (p *parser) at(word string, rest []string, first bool) (Command, bool) {
	switch base := filepath.Base(word); {
	case pythonName.MatchString(base):
		return python(word, rest)
	case base == "sglang" && len(rest) > 0 && rest[0] == "serve":
		return Command{Form: Serve, Program: word, Args: rest[1:]}, true
	case (word == "-m" || word == "--module") && len(rest) > 0 && slices.Contains(serverModules, rest[0]):
		return Command{Form: Module, Args: rest[1:]}, true
	case base == "env":
		p.assignments(rest)
	case shells[base]:
		return p.shell(base, rest)
	case first:
		return p.script(word, rest)
	}
	return Command{}, false
}

// python reads what follows an interpreter: its own options, then -m MODULE or
// a script.
func python(word string, rest []string) (Command, bool) {
	for i := 0; i < len(rest); i++ {
		arg, after := rest[i], rest[i+1:]
		switch {
		case arg == "-m" && len(after) > 0:
			return module(word, after[0], after[1:])
		case strings.HasPrefix(arg, "-m") && len(arg) > 2:
			return module(word, arg[2:], after)
		case arg == "-W" || arg == "-X" || arg == "--check-hash-based-pycs":
			i++
		case strings.HasPrefix(arg, "-c"):
			return Command{}, false
		case !strings.HasPrefix(arg, "-"):
			return program(word, arg, after)
		}
	}
	return Command{}, false
}

func module(python, name string, args []string) (Command, bool) {
	c := Command{Program: python, Python: python}
	switch {
	case slices.Contains(serverModules, name):
		c.Form, c.Args = Module, args
	case name == "sglang.cli.main" && len(args) > 0 && args[0] == "serve":
		c.Form, c.Args = Serve, args[1:]
	}
	return c, c.SGLang()
}

// program is an interpreter with the path of a script.
func program(python, path string, args []string) (Command, bool) {
	c := Command{Program: python, Python: python}
	switch {
	case strings.HasSuffix(path, "sglang/launch_server.py"):
		c.Form, c.Args = Script, args
	case filepath.Base(path) == "sglang" && len(args) > 0 && args[0] == "serve":
		c.Form, c.Args = Serve, args[1:]
	}
	return c, c.SGLang()
}

// assignments takes the options and NAME=VALUE words that follow env.
func (p *parser) assignments(words []string) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		operand := ""
		if i+1 < len(words) {
			operand = words[i+1]
		}
		switch {
		case word == "-u" || word == "--unset":
			p.unset(operand)
			i++
		case strings.HasPrefix(word, "--unset="):
			p.unset(strings.TrimPrefix(word, "--unset="))
		case word == "-i" || word == "-" || word == "--ignore-environment":
			p.env = nil
		case word == "-C" || word == "--chdir":
			p.chdir(operand)
			i++
		case assignment(word):
			p.env = append(p.env, word)
		case !strings.HasPrefix(word, "-"):
			return
		}
	}
}

// assignment tells whether a word has the form NAME=VALUE.
func assignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, "-/.")
}

func (p *parser) unset(name string) {
	p.env = slices.DeleteFunc(p.env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

func (p *parser) chdir(dir string) { p.dir = p.abs(dir) }

// abs makes a path count from where the command is at that point.
func (p *parser) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.dir, path)
}
