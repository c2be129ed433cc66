package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Interpreter is the Python that will run the server, with what decides where
// it looks for modules. FindInterpreter fills it in; a caller that knows the
// python needs no more than Python.
type Interpreter struct {
	Python string   `json:"python"`          // absolute path, links not followed: a venv is known by its link
	Dir    string   `json:"dir"`             // working directory; "" = this process's own
	Env    []string `json:"-"`               // NAME=value; nil = this process's own
	Flags  []string `json:"flags,omitempty"` // of the interpreter: "-I", "-X", "pycache_prefix=..."
	Path0  string   `json:"path0,omitempty"` // first entry of sys.path: "" = Dir, as with -m; "-" = none
}

// FindInterpreter reads a server's command and returns the Python that it will
// run, without running it. It sees through env, numactl and their like, shells
// and shell scripts, uv run, conda run, console scripts and pyenv shims. dir is
// where the command will be started and env what it will inherit; nil means this
// process's own. The error is ErrNoPython where there is none to be found; the
// cure then is to name it, server.python in launch.toml.
func FindInterpreter(ctx context.Context, argv []string, dir string, env []string) (Interpreter, error) {
	if env == nil {
		env = os.Environ()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Interpreter{}, err
	}
	if len(argv) == 0 {
		return Interpreter{}, noPython("cannot find the interpreter: the command is empty")
	}
	w := walker{ctx: ctx, dir: dir, env: slices.Clone(env)}
	in, err := w.command(argv)
	if err != nil {
		return Interpreter{}, fmt.Errorf("cannot find the interpreter of %q: %w", argv[0], err)
	}
	return in, nil
}

// walker follows a command to its interpreter. Where and with what a wrapper
// would start the next command is kept in dir and env.
type walker struct {
	ctx   context.Context
	dir   string
	env   []string
	depth int
}

// maxDepth ends scripts that call themselves.
const maxDepth = 16

var pythonName = regexp.MustCompile(`^(python|pypy)[0-9.]*t?$`)

func (w walker) command(argv []string) (Interpreter, error) {
	if w.depth++; w.depth > maxDepth {
		return Interpreter{}, noPython("wrappers are nested deeper than %d", maxDepth)
	}
	if err := w.ctx.Err(); err != nil {
		return Interpreter{}, err
	}
	if len(argv) == 0 {
		return Interpreter{}, noPython("a wrapper starts no command")
	}
	base := filepath.Base(argv[0])
	if pythonName.MatchString(base) {
		return w.python(argv[0], argv[1:])
	}
	switch base {
	case "env":
		return w.envCommand(argv[1:])
	case "sh", "bash", "dash", "ash", "zsh", "ksh":
		return w.shellCommand(argv[1:])
	case "uv":
		return w.uvRun(argv[1:])
	case "conda", "mamba", "micromamba":
		return w.condaRun(argv[0], argv[1:])
	}
	if skip, ok := wrappers[base]; ok {
		return w.command(skip.rest(argv[1:]))
	}
	return w.program(argv)
}

// python reads the interpreter's own options and how the program is named,
// which decides the first entry of sys.path.
func (w walker) python(name string, args []string) (Interpreter, error) {
	path, err := w.lookPath(name)
	if err != nil {
		return Interpreter{}, err
	}
	in := Interpreter{Python: path, Dir: w.dir, Env: w.env}
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "-W" || arg == "-X" || arg == "--check-hash-based-pycs":
			n := min(2, len(args))
			in.Flags, args = append(in.Flags, args[:n]...), args[n:]
			continue
		case strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.ContainsAny(arg, "mc") && !strings.HasPrefix(arg, "-X") && !strings.HasPrefix(arg, "-W"):
			// "-m", "-c" or a bundle that ends in one, such as "-um".
			if flags := arg[:strings.IndexAny(arg, "mc")]; flags != "-" {
				in.Flags = append(in.Flags, flags)
			}
			return in.pathless(), nil
		case strings.HasPrefix(arg, "-") && arg != "-":
			in.Flags, args = append(in.Flags, arg), args[1:]
			continue
		}
		if script := w.abs(arg); isFile(script) || isLink(script) {
			in.Path0 = scriptDir(script)
		}
		return in.pathless(), nil
	}
	return in, nil
}

func scriptDir(script string) string {
	if real, err := filepath.EvalSymlinks(script); err == nil {
		script = real
	}
	return filepath.Dir(script)
}

// pathless notes the options under which no folder is put before sys.path.
func (in Interpreter) pathless() Interpreter {
	for _, f := range in.Flags {
		if !strings.HasPrefix(f, "--") && !strings.HasPrefix(f, "-X") && strings.ContainsAny(f, "IP") {
			in.Path0 = "-"
		}
	}
	if v, ok := getenv(in.Env, "PYTHONSAFEPATH"); ok && v != "" {
		in.Path0 = "-"
	}
	return in
}

// program opens what a name means: a script tells its interpreter in its first
// line. Of a binary nothing is known; a word python among its arguments is then
// taken for the command that it starts.
func (w walker) program(argv []string) (Interpreter, error) {
	path, err := w.lookPath(argv[0])
	if err == nil {
		head, err := readHead(path)
		if err != nil {
			return Interpreter{}, err
		}
		if line, ok := bytes.CutPrefix(head, []byte("#!")); ok {
			first, _, _ := bytes.Cut(line, []byte("\n"))
			return w.script(path, strings.Fields(string(first)), argv)
		}
	}
	for i, arg := range argv[1:] {
		if pythonName.MatchString(filepath.Base(arg)) {
			return w.command(argv[i+1:])
		}
	}
	if err != nil {
		return Interpreter{}, err
	}
	return Interpreter{}, noPython("%s is no script and starts no python that can be seen", path)
}

// script follows a shebang line.
func (w walker) script(path string, shebang, argv []string) (Interpreter, error) {
	switch {
	case len(shebang) == 0:
		return Interpreter{}, noPython("%s has an empty #! line", path)
	case isShim(path):
		return w.shim(path, argv)
	}
	if filepath.Base(shebang[0]) == "env" && len(shebang) > 1 && shebang[1] == "-S" {
		shebang = append(shebang[:1], shebang[2:]...)
	}
	return w.command(append(append(slices.Clone(shebang), path), argv[1:]...))
}

const headSize = 4096

func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, headSize)
	n, err := f.Read(head)
	if n == 0 && err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return head[:n], nil
}

// lookPath is exec.LookPath with the walker's PATH and folder. An empty or
// relative entry of PATH counts from there too, as it would for the command.
func (w walker) lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return executable(w.abs(name))
	}
	path, _ := getenv(w.env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if found, err := executable(filepath.Join(w.abs(dir), name)); err == nil {
			return found, nil
		}
	}
	return "", noPython("%q is not on PATH", name)
}

func (w walker) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(w.dir, path)
}

func executable(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", noPython("there is no %s", path)
	case err != nil:
		return "", err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return "", noPython("%s cannot be executed", path)
	}
	return path, nil
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

func getenv(env []string, name string) (string, bool) {
	for _, pair := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func (w *walker) setenv(name, value string) {
	w.unsetenv(name)
	w.env = append(w.env, name+"="+value)
}

func (w *walker) unsetenv(name string) {
	w.env = slices.DeleteFunc(slices.Clone(w.env), func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
}

// enter makes an environment folder the active one, as its activate script does.
func (w *walker) enter(variable, prefix string) {
	path, _ := getenv(w.env, "PATH")
	w.setenv(variable, prefix)
	w.setenv("PATH", filepath.Join(prefix, "bin")+":"+path)
}
