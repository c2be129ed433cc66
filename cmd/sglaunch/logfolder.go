package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sglaunch/internal/statedir"
)

// logIn names the log that a folder stands for: that of an attempt, or of the
// newest attempt of a launch that has one. What is no folder stands for itself.
func logIn(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path, nil // whoever opens it tells what is wrong with it
	}
	logs := []string{filepath.Join(path, "server.log")}
	attempts, _ := statedir.Launch{Path: path}.Attempts() // none, where it is no launch's folder
	for _, a := range slices.Backward(attempts) {
		logs = append(logs, a.Log())
	}
	for _, log := range logs {
		if _, err := os.Stat(log); err == nil {
			return log, nil
		}
	}
	return "", &exitError{exitUsage, fmt.Errorf("cannot read %q as output: it is a folder without a server.log", path), "give a file, or the folder of a launch or an attempt"}
}
