package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"sglaunch/internal/plain"
)

// output is standard output for every command. It remembers that it could not be
// written, so that none ends with success whose answer nobody has.
type output struct {
	to io.Writer

	mu     sync.Mutex
	failed error // the first failure
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = err
	}
	return n, err
}

// unwritten tells of an answer that was lost, in place of success and of the bare
// failure. A command that failed on its own keeps its exit code.
func (o *output) unwritten(stderr io.Writer, err error) error {
	o.mu.Lock()
	failed := o.failed
	o.mu.Unlock()
	own := err != nil && !errors.Is(err, failed)
	switch {
	case failed == nil:
		return err
	case errors.Is(failed, syscall.EPIPE): // the reader wants no more, as head does
		if own {
			return err
		}
		return quietExit(exitFailed)
	}
	lost := fmt.Errorf("cannot write to standard output: %w", plain.Error(failed))
	if own {
		printError(stderr, lost)
		return err
	}
	return lost
}

// fileOf is the file that a writer of ours ends in, where it is one.
func fileOf(w io.Writer) (*os.File, bool) {
	if o, ours := w.(*output); ours {
		w = o.to
	}
	f, isFile := w.(*os.File)
	return f, isFile
}

// writeJSON writes one document on one line, as it is: nobody reads it as HTML.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
