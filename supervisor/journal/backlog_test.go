package journal

import (
	"bytes"
	"errors"
	"testing"
)

var errFull = errors.New("full")

// smallDisk takes so many bytes.
type smallDisk struct {
	bytes.Buffer
	room int
}

func (d *smallDisk) Write(p []byte) (int, error) {
	if len(p) <= d.room {
		d.room -= len(p)
		return d.Buffer.Write(p)
	}
	n, _ := d.Buffer.Write(p[:d.room])
	d.room = 0
	return n, errFull
}

func (d *smallDisk) Close() error { return nil }

// A disk that was full loses nothing of the journal, as long as memory holds it.
func TestBacklogOfAFullDisk(t *testing.T) {
	d := &smallDisk{room: 6}
	b := backlog{file: d}
	for _, line := range []string{"one", "two", "three"} {
		if !b.add([]byte(line)) {
			t.Fatalf("%s was not taken", line)
		}
		_ = b.flush() // the disk fills within "two"
	}
	if err := b.flush(); !errors.Is(err, errFull) {
		t.Errorf("flush: %v", err)
	}
	d.room = 2 * backlogLimit
	if err := b.flush(); err != nil || d.String() != "one\ntwo\nthree\n" {
		t.Errorf("%q, %v", d.String(), err)
	}
	d.room = 0
	for b.add(make([]byte, 1000)) {
		_ = b.flush()
	}
	if len(b.waiting) > backlogLimit+1 {
		t.Errorf("%d bytes wait", len(b.waiting))
	}
}
