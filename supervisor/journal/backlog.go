package journal

import "io"

// Bounds of what waits in memory for the disk: how much is written at once, and how
// much is kept of what a disk refuses.
const (
	batch        = 64 << 10
	backlogLimit = 1 << 20
)

// backlog is what a file has not taken yet. What a disk takes in part goes on there
// once it takes more: no line is torn and none is written twice.
type backlog struct {
	file    io.WriteCloser
	waiting []byte
}

// add takes a line, unless too much waits already.
func (b *backlog) add(line []byte) bool {
	if len(b.waiting)+len(line) > backlogLimit {
		return false
	}
	b.waiting = append(append(b.waiting, line...), '\n')
	return true
}

func (b *backlog) flush() error {
	if len(b.waiting) == 0 {
		return nil
	}
	n, err := b.file.Write(b.waiting)
	b.waiting = b.waiting[:copy(b.waiting, b.waiting[n:])]
	return err
}
