package patch

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// wrapper is a program that starts another: which of its options take the next
// word, and how many words of its own come before the command.
type wrapper struct {
	valued string // options with a value in the next word, separated by blanks
	words  int
}

var wrappers = map[string]wrapper{
	"numactl":   {valued: "-i -N -m -C -p -P -l --interleave --cpunodebind --membind --physcpubind --preferred --preferred-many"},
	"nice":      {valued: "-n --adjustment"},
	"ionice":    {valued: "-c -n --class --classdata"},
	"taskset":   {words: 1},
	"chrt":      {words: 1, valued: "-T -P -D"},
	"timeout":   {words: 1, valued: "-s -k --signal --kill-after"},
	"stdbuf":    {valued: "-i -o -e --input --output --error"},
	"time":      {valued: "-f -o --format --output"},
	"setsid":    {},
	"nohup":     {},
	"exec":      {valued: "-a"},
	"command":   {},
	"prlimit":   {},
	"unbuffer":  {},
	"catchsegv": {},
	"tini":      {valued: "-p -e"},
	"dumb-init": {valued: "-r --rewrite"},
	"flock":     {words: 1, valued: "-w -E --timeout --conflict-exit-code"},
	"choom":     {valued: "-n --adjust"},
	"setarch":   {},
}

// rest is the command that the wrapper starts.
func (r wrapper) rest(args []string) []string {
	valued := strings.Fields(r.valued)
	words := r.words
	for len(args) > 0 {
		switch arg := args[0]; {
		case arg == "--":
			args = args[1:]
			if words == 0 {
				return args
			}
		case strings.HasPrefix(arg, "-") && len(arg) > 1:
			n := 1
			if slices.Contains(valued, arg) {
				n = min(2, len(args))
			}
			args = args[n:]
		case words > 0:
			words--
			args = args[1:]
		default:
			return args
		}
	}
	return nil
}

// envCommand reads env's own options and assignments.
func (w walker) envCommand(args []string) (Interpreter, error) {
	for len(args) > 0 {
		arg := args[0]
		next := func() string {
			if len(args) > 1 {
				args = args[1:]
				return args[0]
			}
			return ""
		}
		name, value, assigned := strings.Cut(arg, "=")
		switch {
		case arg == "-i" || arg == "-" || arg == "--ignore-environment":
			w.env = nil
		case arg == "-u" || arg == "--unset":
			w.unsetenv(next())
		case name == "--unset":
			w.unsetenv(value)
		case arg == "-C" || arg == "--chdir":
			w.dir = w.abs(next())
		case name == "--chdir":
			w.dir = w.abs(value)
		case arg == "-S" || arg == "--split-string":
			words := strings.Fields(next())
			args = append([]string{""}, append(words, args[1:]...)...)
		case strings.HasPrefix(arg, "-"):
		case assigned:
			w.setenv(name, value)
		default:
			return w.command(args)
		}
		args = args[1:]
	}
	return w.command(nil)
}

// uvRun finds the environment that uv would use: the project's, the active one
// or the nearest .venv. One that uv makes for the run alone cannot be patched.
func (w walker) uvRun(args []string) (Interpreter, error) {
	run := slices.Index(args, "run")
	if run < 0 {
		return Interpreter{}, noPython("uv starts a server by \"uv run\" only")
	}
	valued := strings.Fields("--project --directory --python -p --extra --group --package --env-file --index --default-index --cache-dir --config-file --with-editable --link-mode --color")
	project := w.dir
	rest := args[run+1:]
	options := append(slices.Clone(args[:run]), rest...)
	var command []string
	for i := 0; i < len(options); i++ {
		arg := options[i]
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case i >= run && arg == "--":
			command = options[i+1:]
		case i >= run && (!strings.HasPrefix(arg, "-") || arg == "-m" || arg == "--module"):
			command = options[i:]
		case name == "--isolated" || name == "--with" || name == "--with-requirements" || name == "--script" || name == "-s":
			return Interpreter{}, noPython("uv run %s makes an environment for this run alone", arg)
		default:
			if !joined && slices.Contains(valued, name) && i+1 < len(options) {
				i++
				value = options[i]
			}
			switch name {
			case "--directory":
				w.dir = w.abs(value)
				project = w.dir
			case "--project":
				project = w.abs(value)
			}
			continue
		}
		break
	}
	prefix, err := w.uvEnvironment(project)
	if err != nil {
		return Interpreter{}, err
	}
	w.enter("VIRTUAL_ENV", prefix)
	if len(command) > 0 && (command[0] == "-m" || command[0] == "--module" || strings.HasSuffix(command[0], ".py")) {
		command = append([]string{"python"}, command...)
		command[1] = strings.Replace(command[1], "--module", "-m", 1)
	}
	return w.command(command)
}

func (w walker) uvEnvironment(project string) (string, error) {
	var tried []string
	if set, ok := getenv(w.env, "UV_PROJECT_ENVIRONMENT"); ok && set != "" {
		tried = append(tried, set)
	}
	for dir := project; ; dir = filepath.Dir(dir) {
		if isFile(filepath.Join(dir, "pyproject.toml")) {
			tried = append(tried, filepath.Join(dir, ".venv"))
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if active, ok := getenv(w.env, "VIRTUAL_ENV"); ok && active != "" {
		tried = append(tried, active)
	}
	for dir := project; ; dir = filepath.Dir(dir) {
		tried = append(tried, filepath.Join(dir, ".venv"))
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for _, prefix := range tried {
		if !filepath.IsAbs(prefix) {
			prefix = filepath.Join(project, prefix)
		}
		if isFile(filepath.Join(prefix, "pyvenv.cfg")) {
			return prefix, nil
		}
	}
	return "", noPython("uv has no environment for %s yet (uv sync makes it)", project)
}

// condaRun finds the environment by its prefix or name.
func (w walker) condaRun(conda string, args []string) (Interpreter, error) {
	if len(args) == 0 || args[0] != "run" {
		return Interpreter{}, noPython("%s starts a server by \"run\" only", filepath.Base(conda))
	}
	var prefix string
	var err error
	for args = args[1:]; len(args) > 0 && strings.HasPrefix(args[0], "-"); args = args[1:] {
		name, value, joined := strings.Cut(args[0], "=")
		if !joined && slices.Contains([]string{"-n", "--name", "-p", "--prefix", "--cwd", "-a", "--attach"}, name) && len(args) > 1 {
			args = args[1:]
			value = args[0]
		}
		switch name {
		case "-n", "--name":
			prefix, err = w.condaNamed(conda, value)
		case "-p", "--prefix":
			prefix = w.abs(value)
		case "--cwd":
			w.dir = w.abs(value)
		}
		if err != nil {
			return Interpreter{}, err
		}
	}
	if prefix == "" {
		prefix, _ = getenv(w.env, "CONDA_PREFIX")
	}
	if prefix == "" {
		return Interpreter{}, noPython("conda run names no environment and none is active")
	}
	w.enter("CONDA_PREFIX", prefix)
	return w.command(args)
}

func (w walker) condaNamed(conda, name string) (string, error) {
	roots := w.condaRoots(conda)
	if name == "base" && len(roots) > 0 {
		return roots[0], nil
	}
	var tried []string
	for _, variable := range []string{"CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"} {
		list, _ := getenv(w.env, variable)
		for _, dir := range strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == ',' }) {
			tried = append(tried, filepath.Join(dir, name))
		}
	}
	for _, root := range roots {
		tried = append(tried, filepath.Join(root, "envs", name))
	}
	home, _ := getenv(w.env, "HOME")
	tried = append(tried, filepath.Join(home, ".conda", "envs", name))
	for _, prefix := range append(tried, listed(filepath.Join(home, ".conda", "environments.txt"), name)...) {
		if info, err := os.Stat(filepath.Join(prefix, "conda-meta")); err == nil && info.IsDir() {
			return prefix, nil
		}
	}
	return "", noPython("there is no conda environment %q that can be found", name)
}

// condaRoots are the folders that may hold envs/, the likeliest first.
func (w walker) condaRoots(conda string) []string {
	var roots []string
	if root, ok := getenv(w.env, "MAMBA_ROOT_PREFIX"); ok && root != "" {
		roots = append(roots, root)
	}
	exe, _ := getenv(w.env, "CONDA_EXE")
	if path, err := w.lookPath(conda); err == nil {
		exe = path
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		roots = append(roots, filepath.Dir(filepath.Dir(real)))
	}
	return roots
}

func listed(file, name string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	var found []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if filepath.Base(lines.Text()) == name {
			found = append(found, lines.Text())
		}
	}
	return found
}

// isShim tells a pyenv shim: it starts the program of the same name in the
// version that the folder or the environment chooses.
func isShim(path string) bool { return filepath.Base(filepath.Dir(path)) == "shims" }

// shim asks pyenv, which starts nothing of the command itself.
func (w walker) shim(path string, argv []string) (Interpreter, error) {
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	pyenv := filepath.Join(filepath.Dir(filepath.Dir(path)), "bin", "pyenv")
	cmd := exec.CommandContext(ctx, pyenv, "which", filepath.Base(path))
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.dir, w.env, time.Second
	out, err := cmd.Output()
	if err != nil {
		return Interpreter{}, noPython("%s does not know which %s is meant", pyenv, filepath.Base(path))
	}
	return w.command(append([]string{strings.TrimSpace(string(out))}, argv[1:]...))
}
