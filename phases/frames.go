package phases

import (
	"bytes"
	"slices"
)

// Bounds of what is kept of one traceback.
const (
	maxFrameFiles = 48
	maxFramePath  = 300
)

// keepFile takes the source file of a traceback frame: `File "PATH", line N`.
func (f *failure) keepFile(msg []byte) {
	_, rest, ok := bytes.Cut(msg, bareFrame)
	if !ok {
		return
	}
	path, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok || len(path) == 0 || len(path) > maxFramePath || len(f.files) >= maxFrameFiles {
		return
	}
	if s := string(path); !slices.Contains(f.files, s) {
		f.files = append(f.files, s)
	}
}

// asRaised writes a frame of a fatal signal's dump, "line 12 in f", as an
// exception's traceback writes it: "line 12, in f"; one out of a JSON string
// without its escapes. It tells whether it was of a dump.
func (t *Tracker) asRaised(msg []byte) (frame []byte, dumped bool) {
	if bytes.Contains(msg, escapedQuote) {
		msg = bytes.ReplaceAll(msg, escapedQuote, []byte(`"`))
	}
	_, rest, ok := bytes.Cut(msg, frameLine)
	if !ok {
		return msg, false
	}
	digits := digitsLen(rest)
	if !bytes.HasPrefix(rest[digits:], []byte(" in ")) {
		return msg, false
	}
	head := len(msg) - len(rest) + digits
	t.scratch = append(append(append(t.scratch[:0], msg[:head]...), ','), msg[head:]...)
	return t.scratch, true
}

// Frames returns the source files that the root failure's traceback runs
// through, each once, as printed; nil where there is none. They tell whose code
// failed: a patched file among them makes its patch a suspect.
func (t *Tracker) Frames() []string {
	_, best, f := t.rootFault()
	if best == nil || f == nil {
		return nil
	}
	return slices.Clone(f.files)
}
