package shim

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"syscall"
	"time"
)

const (
	barEvery = 30 * time.Second // a bar that goes on is a line so often
	lineMost = 48 << 10         // bytes of a line; the journal splits longer ones itself
)

// stampForm is how SGLang begins a line: [2026-02-19 05:52:10 TP3]. It is looked
// for behind a bar only, which has no end of a line for the message to follow.
var stampForm = regexp.MustCompile(`\[20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d`)

// journald makes lines for systemd's journal, which shows a line with a bar in it
// as a blob: a bar is a line when it moves on or goes on for long, and a message
// behind a bar is a line of its own. It is the one reader that does not get the
// server's bytes as they are.
type journald struct {
	line  []byte    // since the last end of a line or of a bar's state
	bar   []byte    // the newest state of a bar, not written yet
	shown time.Time // when the bar began, or was last written
}

// linesFor returns what makes lines for f; nil where it gets the bytes as they
// are.
func (s *shim) linesFor(f *os.File) *journald {
	switch s.o.Passthrough {
	case "lines":
		return &journald{}
	case "auto", "":
		return journalOf(f)
	}
	return nil
}

// journalOf returns nil where f is not the journal.
func journalOf(f *os.File) *journald {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Getenv("JOURNAL_STREAM") != fmt.Sprintf("%d:%d", st.Dev, st.Ino) {
		return nil
	}
	return &journald{}
}

// pass takes output and returns the lines that are complete with it.
func (j *journald) pass(p []byte, at time.Time) (lines []byte) {
	for len(p) > 0 {
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			end = len(p)
		}
		j.line = append(j.line, p[:end]...)
		switch {
		case end == len(p):
			if len(j.line) > lineMost {
				lines = j.endLine(lines)
			}
			return lines
		case p[end] == '\n':
			lines = j.endLine(lines)
		default:
			lines = j.redraw(lines, at)
		}
		p = p[end+1:]
	}
	return lines
}

// redraw: what stands in the line is a state of a bar, about to be replaced.
func (j *journald) redraw(lines []byte, at time.Time) []byte {
	if len(j.line) == 0 {
		return lines
	}
	if j.bar == nil {
		j.shown = at
	}
	j.bar = append(j.bar[:0], j.line...)
	j.line = j.line[:0]
	return append(lines, j.overdue(at)...)
}

// overdue returns the bar's state if none was written for long.
func (j *journald) overdue(at time.Time) []byte {
	if j.wait(at) != 0 || len(j.bar) == 0 {
		return nil
	}
	line := append(bytes.Clone(j.bar), '\n')
	j.bar, j.shown = j.bar[:0], at
	return line
}

// wait is how long until the bar is overdue; with no bar, for ever.
func (j *journald) wait(at time.Time) time.Duration {
	if len(j.bar) == 0 {
		return time.Duration(1<<63 - 1)
	}
	return max(0, barEvery-at.Sub(j.shown))
}

// endLine writes what stands in the line, and before it the bar that it ends: if
// the line is a later state of the bar, that is enough.
func (j *journald) endLine(lines []byte) []byte {
	rest := j.line
	if stamp := stampForm.FindIndex(rest); stamp != nil && stamp[0] > 0 && isBar(rest[:stamp[0]]) {
		lines = append(append(lines, rest[:stamp[0]]...), '\n')
		rest = rest[stamp[0]:]
	} else if len(j.bar) > 0 && !isBar(rest) {
		lines = append(append(lines, j.bar...), '\n')
	}
	if len(rest) > 0 || len(j.bar) == 0 {
		lines = append(append(lines, rest...), '\n')
	}
	j.line, j.bar = j.line[:0], nil
	return lines
}

// isBar tells a state of a progress bar, as tqdm draws it, from a message.
func isBar(s []byte) bool { return bytes.Contains(s, []byte("%|")) }

// rest returns what has no end of a line yet.
func (j *journald) rest() []byte {
	if len(j.line) == 0 && len(j.bar) == 0 {
		return nil
	}
	return j.endLine(nil)
}
