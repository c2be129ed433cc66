package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"sglaunch/internal/rawlog"
	"sglaunch/phases"
	"sglaunch/supervisor/journal"
)

// openLog opens a saved output to be explained: a file of any kind, or the log
// of an attempt with all the parts that were rotated away from it. What is known
// by its begin to be something else is refused.
func openLog(path string) (io.ReadCloser, error) {
	log, err := openParts(path)
	if err != nil {
		return nil, err
	}
	output := bufio.NewReaderSize(log, 4<<10)
	head, _ := output.Peek(512) // an error comes again where it is read
	if what, advice := otherThanOutput(head); what != "" {
		return nil, errors.Join(&exitError{exitUsage, fmt.Errorf("cannot explain %q: it is %s", path, what), advice}, log.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{output, log}, nil
}

func openParts(path string) (io.ReadCloser, error) {
	path, err := logIn(path)
	if err != nil {
		return nil, err
	}
	if parts, err := rawlog.Parts(path); err != nil || len(parts) == 1 {
		return phases.Open(path)
	}
	return rawlog.Open(path)
}

// A wrapping is a form in which an output may lie in a file that is not read as it
// is, how it begins, and what makes the output of it.
type wrapping struct {
	name   string
	at     int
	magic  string
	unwrap string
}

var wrappings = []wrapping{
	{"compressed by xz", 0, "\xfd7zXZ\x00", "xz -dc LOG"},
	{"compressed by zstd", 0, "\x28\xb5\x2f\xfd", "zstd -dc LOG"},
	{"compressed by bzip2", 4, "1AY&SY", "bzip2 -dc LOG"},
	{"compressed by lz4", 0, "\x04\x22\x4d\x18", "lz4 -dc LOG"},
	{"a zip archive", 0, "PK\x03\x04", "unzip -p LOG"},
	{"a tar archive", 257, "ustar", "tar -xOf LOG"},
	{"text in UTF-16", 0, "\xff\xfe", "iconv -f UTF-16 -t UTF-8 LOG"},
	{"text in UTF-16", 0, "\xfe\xff", "iconv -f UTF-16 -t UTF-8 LOG"},
}

// otherThanOutput tells what a file that begins so is, where it is no output of a
// server, and what to do with it.
func otherThanOutput(head []byte) (what, advice string) {
	if journal.Is(head) {
		return "the journal of a launch, no server output",
			"sglaunch replay shows what it says; the outputs stand beside it in attempts/N/server.log"
	}
	for _, w := range wrappings {
		if len(head) > w.at && bytes.HasPrefix(head[w.at:], []byte(w.magic)) {
			return w.name, w.unwrap + " | sglaunch explain -"
		}
	}
	return "", ""
}
