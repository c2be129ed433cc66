package rawlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// offsetDigits is the width of an offset in a name: a petabyte sorts right.
const offsetDigits = 15

func partName(path string, from int64) string {
	return fmt.Sprintf("%s.%0*d", path, offsetDigits, from)
}

// Part is one file of an output.
type Part struct {
	Path string
	From int64 // offset of its first byte; of the newest part it is where the one before ends
}

// Parts lists the files of an output in order. path is that of the newest part;
// an output that was never rotated has that one alone.
func Parts(path string) ([]Part, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("cannot look for the parts of %q: %w", path, err)
	}
	var parts []Part
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		from, err := strconv.ParseInt(digits, 10, 64)
		if ok && err == nil && len(digits) == offsetDigits && from >= 0 {
			parts = append(parts, Part{filepath.Join(filepath.Dir(path), e.Name()), from})
		}
	}
	slices.SortFunc(parts, func(a, b Part) int { return int(min(max(a.From-b.From, -1), 1)) })
	newest := Part{Path: path}
	if len(parts) > 0 {
		last := parts[len(parts)-1]
		info, err := os.Stat(last.Path)
		if err != nil {
			return nil, fmt.Errorf("cannot look for the parts of %q: %w", path, err)
		}
		newest.From = last.From + info.Size()
	}
	return append(parts, newest), nil
}

// Reader reads an output from its oldest byte on, over all of its parts. It
// holds the newest one open, so that a rotation meanwhile takes nothing away.
type Reader struct {
	io.Reader
	From  int64 // offset of the first byte: what was before is not kept
	files []*os.File
}

// Open opens all parts of an output for reading.
func Open(path string) (*Reader, error) {
	for {
		r, err := open(path)
		if !errors.Is(err, errTurned) {
			return r, err
		}
	}
}

// errTurned says that the output was rotated while it was opened.
var errTurned = errors.New("rotated meanwhile")

func open(path string) (*Reader, error) {
	newest, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Reader{files: []*os.File{newest}, From: -1}
	parts, err := Parts(path)
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	readers := make([]io.Reader, 0, len(parts))
	for _, p := range parts[:len(parts)-1] {
		f, err := os.Open(p.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // beyond what is kept, since a moment
		}
		if err != nil {
			_ = r.Close()
			return nil, err
		}
		r.files = append(r.files, f)
		readers = append(readers, f)
		if r.From < 0 {
			r.From = p.From
		}
		if sameFile(f, newest) {
			_ = r.Close()
			return nil, errTurned
		}
	}
	if r.From < 0 {
		r.From = parts[len(parts)-1].From
	}
	r.Reader = io.MultiReader(append(readers, newest)...)
	return r, nil
}

func sameFile(a, b *os.File) bool {
	x, errX := a.Stat()
	y, errY := b.Stat()
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// Close closes every part.
func (r *Reader) Close() error {
	var all []error
	for _, f := range r.files {
		all = append(all, f.Close())
	}
	return errors.Join(all...)
}
