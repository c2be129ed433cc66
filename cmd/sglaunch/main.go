// Command sglaunch starts an SGLang server in place of the raw command, knows
// at every moment how far it is, and on crash, hang or timeout ends everything
// that belongs to it, proves that the GPU memory is back, undoes source
// patches, and tries again in a way that has a chance.
package main

import (
	"os"
	"runtime/debug"
)

func main() {
	// Go ends with status 2 on a panic; a crash is told apart from every exit
	// code of ours only if it ends by a signal.
	debug.SetTraceback("crash")
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}
