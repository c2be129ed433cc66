package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/sglangcmd"
)

// checkCommand looks for the program that will be executed, and for the
// interpreter behind it.
func checkCommand(_ context.Context, l *look) []Check {
	if len(l.Argv) == 0 {
		return []Check{fail("bad_argument", "give the server's command after --, or as server.command", "there is no command")}
	}
	path, c, ok := l.program(l.Argv[0])
	if !ok {
		return []Check{c}
	}
	checks := []Check{fine("%s is %s", l.Argv[0], path)}
	if python := l.cmd.Program; l.cmd.Wrapper == "" && python != "" && python != l.Argv[0] {
		path, c, ok := l.program(python)
		if ok {
			c = fine("%s is %s", python, path)
		}
		checks = append(checks, c)
	}
	for _, note := range l.cmd.Notes {
		checks = append(checks, warn("", "the command is only partly understood: %s", note))
	}
	if !l.cmd.SGLang() {
		checks = append(checks, warn("", "the command is not recognisably an SGLang server: its flags are not checked"))
	}
	return checks
}

// program finds an executable as exec would in the server's environment.
func (l *look) program(word string) (path string, c Check, ok bool) {
	path, err := l.lookPath(word)
	switch {
	case errors.Is(err, errFolder):
		return "", fail("permission_denied", "name a program in it", "%q is a folder and may not be executed", path), false
	case errors.Is(err, errNotExecutable):
		return "", fail("permission_denied", "make it executable, or see the mount options", "%q may not be executed", path), false
	case err != nil:
		return "", fail("bad_argument", "check the spelling, and PATH in the environment of the launch", "there is no program %q", word), false
	}
	if why, advice := unrunnable(path); why != "" {
		return "", fail("bad_argument", advice, "%s %s", path, why), false
	}
	return path, Check{}, true
}

// lookPath is exec.LookPath with the server's PATH and directory.
func (l *look) lookPath(word string) (string, error) {
	if strings.Contains(word, "/") {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.Dir, path)
		}
		return path, executable(path)
	}
	path, set := l.cmd.Getenv("PATH")
	if !set {
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	found := fs.ErrNotExist
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, word)
		if !filepath.IsAbs(candidate) {
			candidate = filepath.Join(l.Dir, candidate)
		}
		switch err := executable(candidate); {
		case err == nil:
			return candidate, nil
		case errors.Is(err, errNotExecutable):
			found = err
		}
	}
	return word, found
}

// errNotExecutable says that a file is there and may not be executed;
// errFolder, that it could not be.
var (
	errNotExecutable = errors.New("not executable")
	errFolder        = fmt.Errorf("a folder: %w", errNotExecutable)
)

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return errFolder
	case unix.Access(path, unix.X_OK) != nil:
		return errNotExecutable
	}
	return nil
}

// findPackage asks an interpreter where it would take sglang from. It looks,
// as import does first, and imports nothing.
const findPackage = `
import importlib.util, json, sys
from importlib import metadata
spec = importlib.util.find_spec("sglang")
try:
    version = metadata.version("sglang")
except metadata.PackageNotFoundError:
    version = ""
# Without an origin it is a mere folder of that name, such as a source tree.
where = spec.origin if spec is not None and spec.origin else ""
json.dump({"found": where != "", "where": where, "version": version}, sys.stdout)
`

// checkPackage asks the interpreter for the package, where it is certain that
// the server will run in the same environment.
func checkPackage(ctx context.Context, l *look) []Check {
	if l.cmd.Python == "" || l.cmd.Wrapper != "" || l.cmd.Form == sglangcmd.Script {
		return nil
	}
	path, err := l.lookPath(l.cmd.Python)
	if err != nil {
		return nil // told by checkCommand
	}
	ask := exec.CommandContext(ctx, path, "-c", findPackage)
	ask.Dir, ask.Env = l.cmd.Dir, append([]string{}, l.cmd.Env...) // never nil, which would be ours
	ask.WaitDelay = time.Second                                    // a shim's child may hold the pipe
	out, err := ask.Output()
	var answer struct {
		Found          bool
		Where, Version string
	}
	if err != nil || json.Unmarshal(out, &answer) != nil {
		return []Check{warn("run it by hand and see", "%s does not say where it finds sglang: %s", path, complaint(err))}
	}
	if !answer.Found {
		return []Check{fail("import_error", "use the interpreter of the environment in which sglang is installed",
			"%s finds no package sglang", path)}
	}
	return []Check{fine("sglang %s in %s", answer.Version, filepath.Dir(answer.Where))}
}

// complaint is the last line that a failed program wrote.
func complaint(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
		return lines[len(lines)-1]
	}
	return fmt.Sprint(err)
}
