package rawlog

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Rotation says when the newest part is set aside and how many are kept beside
// it. Zero bounds nothing.
type Rotation struct {
	Size int64         // bytes
	Age  time.Duration // since its first byte
	Keep int           // parts
}

// Book is an output that is written. WriteAt and Sync are for one goroutine,
// ReadAt and Begin for any.
type Book struct {
	path string
	rule Rotation
	born time.Time // of the newest part's first byte; zero: it has none
	next time.Time // not to be rotated before: the disk refused it

	mu    sync.Mutex
	parts []openPart // in order; the last one is written
}

type openPart struct {
	file *os.File
	name string
	from int64
}

const (
	// lineReach is how much longer than asked a part may become for the sake
	// of a line: a bar is redrawn for minutes without an end of a line.
	lineReach = 1 << 20
	// retryAfter is the pause after a rotation that the disk refused.
	retryAfter = time.Minute
)

// Create begins an output. The file must not exist: the output of an attempt is
// never overwritten.
func Create(path string, rule Rotation) (*Book, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot create the log: %w", err)
	}
	return &Book{path: path, rule: rule, parts: []openPart{{file: file, name: path}}}, nil
}

// WriteAt writes output at its offset, which never goes back before one that was
// written; what is left out stays a hole.
func (b *Book) WriteAt(p []byte, offset int64) (n int, err error) {
	if cut := b.cut(p, offset); cut > 0 {
		if n, err = b.newest().writeAt(p[:cut], offset); err != nil {
			return n, err
		}
		b.turn(offset + int64(n))
	}
	if n < len(p) {
		more, err := b.newest().writeAt(p[n:], offset+int64(n))
		return n + more, err
	}
	return n, nil
}

// cut is how much of p belongs to the newest part; 0: all of it, it is not full.
func (b *Book) cut(p []byte, offset int64) int {
	now := time.Now()
	if b.born.IsZero() {
		b.born = now
	}
	size := offset + int64(len(p)) - b.newest().from
	full := b.rule.Size > 0 && size >= b.rule.Size || b.rule.Age > 0 && now.Sub(b.born) >= b.rule.Age
	if !full || now.Before(b.next) {
		return 0
	}
	if end := bytes.LastIndexByte(p, '\n') + 1; end > 0 {
		return end
	}
	if b.rule.Size > 0 && size < b.rule.Size+lineReach {
		return 0
	}
	return len(p)
}

// turn sets the newest part aside and begins another, which starts at offset.
// Where the disk refuses that, the newest part grows on.
func (b *Book) turn(offset int64) {
	old := b.newest()
	aside := partName(b.path, old.from)
	if os.Rename(b.path, aside) != nil {
		b.next = time.Now().Add(retryAfter)
		return
	}
	file, err := os.OpenFile(b.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		_ = os.Rename(aside, b.path) // else it has its new name already, and is still written
		b.next = time.Now().Add(retryAfter)
		return
	}
	b.mu.Lock()
	b.parts[len(b.parts)-1].name = aside
	b.parts = append(b.parts, openPart{file: file, name: b.path, from: offset})
	b.mu.Unlock()
	b.born = time.Time{}
	b.prune()
}

// prune removes the oldest parts. Who reads one of them right now keeps it; its
// descriptor is closed by the runtime.
func (b *Book) prune() {
	b.mu.Lock()
	var gone []openPart
	if more := len(b.parts) - 1 - b.rule.Keep; b.rule.Keep > 0 && more > 0 {
		gone = b.parts[:more]
		b.parts = append([]openPart(nil), b.parts[more:]...)
	}
	b.mu.Unlock()
	for _, p := range gone {
		_ = os.Remove(p.name) // one that stays is removed with the launch
	}
}

func (b *Book) newest() openPart {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parts[len(b.parts)-1]
}

func (p openPart) writeAt(data []byte, offset int64) (int, error) {
	return p.file.WriteAt(data, offset-p.from)
}

// Begin is the offset of the oldest byte that is kept.
func (b *Book) Begin() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parts[0].from
}

// ReadAt reads output at its offset, from one part at a time: n may be short
// without an error. The error is io.EOF where nothing is written yet.
func (b *Book) ReadAt(p []byte, offset int64) (n int, err error) {
	b.mu.Lock()
	i := len(b.parts) - 1
	for i > 0 && b.parts[i].from > offset {
		i--
	}
	part, end := b.parts[i], int64(-1)
	if i+1 < len(b.parts) {
		end = b.parts[i+1].from
	}
	b.mu.Unlock()
	if offset < part.from {
		return 0, fmt.Errorf("cannot read the log at %d: it begins at %d", offset, part.from)
	}
	if end >= 0 && offset+int64(len(p)) > end {
		p = p[:end-offset]
	}
	n, err = part.file.ReadAt(p, offset-part.from)
	if n > 0 || end >= 0 && err == io.EOF {
		return n, nil
	}
	return n, err
}

// Sync has the disk keep what was written to the newest part; the others were
// complete when they were set aside.
func (b *Book) Sync() error { return b.newest().file.Sync() }
