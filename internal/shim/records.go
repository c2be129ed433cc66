package shim

import (
	"encoding/json"
	"fmt"
	"os"

	"sglaunch/internal/proc"
)

// recordsQueued bounds the records that wait for the disk.
const recordsQueued = 4096

// recordFile writes which processes were seen, for whoever has to end them when
// the shim is no more. It has a goroutine of its own: a disk may hang.
type recordFile struct {
	queue   chan proc.Proc
	trouble func(string)
	lost    int
}

func newRecordFile(path string, trouble func(string)) *recordFile {
	r := &recordFile{queue: make(chan proc.Proc, recordsQueued), trouble: trouble}
	if path != "" {
		go r.write(path)
	}
	return r
}

// add queues records. The loop alone calls it.
func (r *recordFile) add(procs []proc.Proc) {
	for _, p := range procs {
		select {
		case r.queue <- p:
		default:
			r.lost++
		}
	}
}

// close ends the writing once all is written.
func (r *recordFile) close() {
	if r != nil {
		close(r.queue)
	}
}

func (r *recordFile) write(path string) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		r.trouble(fmt.Sprintf("cannot record processes: %v", err))
		for range r.queue {
		}
		return
	}
	defer f.Close()
	refused := false
	for p := range r.queue {
		line, _ := json.Marshal(proc.RecordOf(p))
		_, err := f.Write(append(line, '\n'))
		if err != nil && !refused {
			r.trouble(fmt.Sprintf("cannot record processes: %v", err))
		}
		refused = err != nil
	}
}
