package main

import (
	"fmt"
	"os"
)

// thisProgram is where this program lies, for whatever starts it again: the
// supervisor, the sampler of the GPUs, a launch.
func thisProgram() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find this program: %w", err)
	}
	return path, nil
}
