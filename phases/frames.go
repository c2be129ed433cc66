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
	_, rest, ok := bytes.Cut(msg, []byte(`File "`))
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
