package rehearsal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// ErrNoPython says that no usable python3 is on PATH.
var ErrNoPython = errors.New("install python3 (3.8 or newer) and put it on PATH")

// interpreter is what a python3 says about itself.
type interpreter struct {
	Exe   string `json:"exe"`   // the real binary, behind shims, links and environments
	Major int    `json:"major"` // 3
	Minor int    `json:"minor"`
	Full  string `json:"full"` // "3.11.7"
}

// oldest is the first minor version of Python 3 that the package runs on.
const oldest = 8

// askPython is run by the python3 found on PATH. What is found there may be a
// shell script (pyenv) or the link of another environment, so it is asked.
const askPython = `
import json, os, sys
exe = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps({"exe": os.path.realpath(exe), "major": sys.version_info[0],
                  "minor": sys.version_info[1], "full": sys.version.split()[0]}))
`

func findPython(name string) (interpreter, error) {
	var found interpreter
	path, err := exec.LookPath(name)
	if err != nil {
		return found, fmt.Errorf("cannot find %q: %w", name, ErrNoPython)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-I", "-c", askPython)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return found, fmt.Errorf("cannot ask %q for its version: %v %s: %w", path, err, strings.TrimSpace(complaint.String()), ErrNoPython)
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return found, fmt.Errorf("cannot read the answer %q of %q: %v: %w", out, path, err, ErrNoPython)
	}
	if found.Major != 3 || found.Minor < oldest {
		return found, fmt.Errorf("cannot use %q, it is Python %s: %w", found.Exe, found.Full, ErrNoPython)
	}
	return found, nil
}
