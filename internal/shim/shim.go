package shim

import (
	"fmt"
	"os"
)

// Options says what a shim serves. Supervisor is required.
type Options struct {
	// Supervisor is the argv of the supervisor process: the own executable,
	// its hidden command and what the person asked for.
	Supervisor []string
	// Env is the supervisor's environment; nil means the shim's own.
	Env []string
	// Stdin, Stdout and Stderr are the person's; nil means the process's own.
	Stdin, Stdout, Stderr *os.File
}

// Run serves one launch and returns the exit status of sglaunch. It takes the
// whole process: signals, children, descriptors; call it once, from main.
func Run(o Options) int {
	fmt.Fprintln(os.Stderr, "sglaunch: cannot run: the shim is not in this commit yet")
	return 10
}
