package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"sglaunch/internal/config"
)

// workingDirectory is where the server starts unless server.directory says
// otherwise. A launch without one ends with 78, and so does all that looks ahead
// to a launch.
func workingDirectory() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", &exitError{exitConfig, fmt.Errorf("cannot find the working directory: %w", err), "was it removed? cd to one that is there, or set server.directory"}
	}
	return dir, nil
}

// serverDirectory is where the server of a configuration starts. A launch that goes on
// has begun in a folder that may be gone; else that is "".
func serverDirectory(c config.Config, began string) (string, error) {
	if dir := cmp.Or(c.Server.Directory, began); dir != "" {
		return dir, nil
	}
	return workingDirectory()
}

// notSetUp gives a launch that cannot be set up the code that it would end with.
func notSetUp(err error) error {
	var told *exitError
	if err == nil || errors.As(err, &told) {
		return err
	}
	return &exitError{exitConfig, err, ""}
}
