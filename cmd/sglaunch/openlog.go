package main

import (
	"io"

	"sglaunch/internal/rawlog"
	"sglaunch/phases"
)

// openLog opens a saved output to be explained: a file of any kind, or the log
// of an attempt with all the parts that were rotated away from it.
func openLog(path string) (io.ReadCloser, error) {
	if parts, err := rawlog.Parts(path); err != nil || len(parts) == 1 {
		return phases.Open(path)
	}
	return rawlog.Open(path)
}
