package stacks

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// gdbArgs make gdb print the main thread and let go again. It stops the process
// for that long. Nothing is fetched from the network, no file of anybody is run.
func gdbArgs(tool string, pid int) []string {
	return []string{
		tool, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off",
		"-p", fmt.Sprint(pid), "-ex", "bt 64",
	}
}

// gdbFrame is a line of a backtrace: number, address, the rest.
var gdbFrame = regexp.MustCompile(`^#\d+\s+(?:0x[0-9a-f]+ in )?(.+)$`)

// gdbPlace ends the line of a frame.
var gdbPlace = regexp.MustCompile(`\)\s+(?:at (\S+):(\d+)|from (\S+))$`)

// parseGDB reads a backtrace of the main thread.
func parseGDB(text []byte) ([]Thread, error) {
	var frames []Frame
	for line := range bytes.Lines(text) {
		m := gdbFrame.FindStringSubmatch(strings.TrimSpace(string(line)))
		if m == nil {
			continue
		}
		f := Frame{Func: function(m[1])}
		if p := gdbPlace.FindStringSubmatch(m[1]); p != nil {
			f.File, f.Line = p[1], atoi(p[2])
			if p[3] != "" {
				f.File = path.Base(p[3])
			}
		}
		frames = append(frames, f)
	}
	if len(frames) == 0 {
		return nil, errors.New("cannot read what gdb prints: no frame in it")
	}
	return []Thread{{Frames: frames}}, nil
}

// function cuts the arguments off a frame: they begin at the first bracket after
// a blank that is not inside a template.
func function(text string) string {
	depth := 0
	for i, c := range text {
		switch {
		case c == '<':
			depth++
		case c == '>' && (i == 0 || text[i-1] != '-'):
			depth--
		case c == '(' && depth <= 0 && i > 0 && text[i-1] == ' ':
			return text[:i-1]
		}
	}
	return text
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
