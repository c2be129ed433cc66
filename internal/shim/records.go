package shim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"sglaunch/internal/proc"
)

const (
	recordsQueued = 4096 // that wait for the disk
	recordsKept   = 4096 // lines in the file before the dead are left out
)

// recordFile writes which processes were seen, for whoever has to end them when
// the shim is no more. It has a goroutine of its own: a disk may hang. A server
// that starts a process a second for months does not fill the disk: from time to
// time the file is written anew without the dead.
type recordFile struct {
	path    string
	queue   chan change
	trouble func(string)

	f       *os.File
	lines   int
	living  map[proc.ID][]byte // the record of each
	refused bool
}

// change is a birth, or, with born nil, a death.
type change struct {
	id   proc.ID
	born *proc.Proc
}

func newRecordFile(path string, trouble func(string)) *recordFile {
	r := &recordFile{path: path, queue: make(chan change, recordsQueued), trouble: trouble, living: map[proc.ID][]byte{}}
	go r.run()
	return r
}

// born and died queue what is to be recorded. The loop alone calls them. What
// finds no place, since the disk hangs, is not recorded; the supervisor has it.
func (r *recordFile) born(p proc.Proc) { r.put(change{id: p.ID, born: &p}) }
func (r *recordFile) died(id proc.ID)  { r.put(change{id: id}) }

func (r *recordFile) put(c change) {
	select {
	case r.queue <- c:
	default:
	}
}

// close ends the writing once all is written.
func (r *recordFile) close() {
	if r != nil {
		close(r.queue)
	}
}

func (r *recordFile) run() {
	for c := range r.queue {
		if c.born == nil {
			delete(r.living, c.id)
			continue
		}
		line, _ := json.Marshal(proc.RecordOf(*c.born))
		line = append(line, '\n')
		r.living[c.id] = line
		r.tell(r.write(line))
	}
	if r.f != nil {
		r.f.Close()
	}
}

func (r *recordFile) write(line []byte) (err error) {
	if r.path == "" {
		return nil
	}
	if r.f != nil && r.lines >= recordsKept && r.lines > 2*len(r.living) {
		return r.anew() // with the new line
	}
	if r.f == nil {
		if r.f, err = os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return err
		}
	}
	r.lines++
	_, err = r.f.Write(line)
	return err
}

// anew replaces the file by one of the living. At every moment one of the two
// stands there whole.
func (r *recordFile) anew() error {
	r.lines = len(r.living) // also where it fails: not again for a while
	text := bytes.Join(slices.Collect(maps.Values(r.living)), nil)
	next := r.path + ".new"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := os.Rename(next, r.path); err != nil {
		f.Close()
		return err
	}
	r.f.Close()
	r.f = f
	return nil
}

// tell is heard once for each time that the disk begins to refuse.
func (r *recordFile) tell(err error) {
	if err != nil && !r.refused {
		r.trouble(fmt.Sprintf("cannot record processes: %v", err))
	}
	r.refused = err != nil
}
