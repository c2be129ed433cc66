package shim

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	chunk = 64 << 10 // bytes a write
	// A line of ours waits for the end of the server's line: until the server
	// is quiet for lineQuiet, and not longer than linePatience, since a bar may
	// be redrawn for ten minutes.
	lineQuiet    = time.Second
	linePatience = 3 * time.Second
	linesKept    = 1000 // of ours, for a terminal that is blocked
)

// outlet is the one writer of one of the person's descriptors. It shows the
// server's output byte for byte, one attempt after the other, and our own lines
// between the server's lines. A reader that does not read, or a disk that is
// full, blocks the outlet and nobody else.
type outlet struct {
	fd   int
	name string
	news func(string) // told when the reader is gone, blocked, or back
	wake bell

	mu      sync.Mutex
	feeds   []*feed
	lines   []ownLine
	dropped int
	stopped bool
	closed  error     // nobody reads any more
	written int64     // progress, in bytes
	pending int       // bytes of the write that has not got on
	since   time.Time // when it got on last, or began; zero: none is pending
	told    bool      // that it does not get on

	journald *journald // nil: bytes are passed on as they are
	midLine  bool      // what was written last is no end of a line
	lastByte time.Time
	lost     int64
	done     chan struct{}
}

// feed is an attempt's output on its way to an outlet.
type feed struct {
	spool  *spool
	lane   lane
	offset int64
}

type ownLine struct {
	text string
	at   time.Time
}

// newOutlet writes to f, which stays its owner's; with a journal, lines instead of
// the bytes as they are.
func newOutlet(f *os.File, name string, j *journald, news func(string)) *outlet {
	o := &outlet{fd: fdOf(f), name: name, news: news, wake: newBell(), journald: j, done: make(chan struct{})}
	go o.run()
	return o
}

// show adds an attempt's output behind what is shown now.
func (o *outlet) show(s *spool, l lane) {
	o.mu.Lock()
	o.feeds = append(o.feeds, &feed{spool: s, lane: l})
	o.mu.Unlock()
	s.listen(o.wake)
}

// print adds a line of our own.
func (o *outlet) print(text string) {
	o.mu.Lock()
	if len(o.lines) < linesKept {
		o.lines = append(o.lines, ownLine{text, time.Now()})
	} else {
		o.dropped++
	}
	o.mu.Unlock()
	o.wake.ring()
}

// stop lets the outlet end once everything is written; done is closed then.
func (o *outlet) stop() {
	o.mu.Lock()
	o.stopped = true
	o.mu.Unlock()
	o.wake.ring()
}

func (o *outlet) run() {
	defer close(o.done)
	buf := make([]byte, chunk)
	for {
		waited := o.ownLines()
		f, last := o.current()
		if f == nil {
			if last && waited == 0 {
				return
			}
			o.await(waited)
			continue
		}
		r := f.spool.read(buf, f.offset, f.lane)
		o.goOn(f, r.next)
		o.lost += r.lost
		switch {
		case r.n > 0:
			o.bytes(f, buf[:r.n], waited > 0)
			if r.all && waited == 0 {
				o.await(o.barWait(0))
			}
		case r.lost > 0:
		case r.end:
			o.next(f)
		default:
			o.await(o.barWait(waited))
		}
	}
}

// goOn says where the outlet reads next. It alone writes the offset; others read
// it under the lock.
func (o *outlet) goOn(f *feed, offset int64) {
	o.mu.Lock()
	f.offset = offset
	o.mu.Unlock()
}

// bytes writes output. Where a line of ours waits it stops behind the last end
// of a line, so that the line has a place.
func (o *outlet) bytes(f *feed, p []byte, lineWaits bool) {
	if end := bytes.LastIndexByte(p, '\n') + 1; lineWaits && end > 0 && end < len(p) {
		o.goOn(f, f.offset-int64(len(p)-end))
		p = p[:end]
	}
	o.lastByte = time.Now()
	if o.journald != nil {
		p = o.journald.pass(p, o.lastByte)
	}
	o.write(p)
	o.midLine = len(p) > 0 && p[len(p)-1] != '\n'
}

// ownLines writes our lines where they have a place now, and says how long to
// wait at most for one that has none (0: no line waits).
func (o *outlet) ownLines() (wait time.Duration) {
	for {
		o.mu.Lock()
		if len(o.lines) == 0 {
			o.mu.Unlock()
			return 0
		}
		line := o.lines[0]
		text := line.text + "\n"
		if o.midLine && !o.idle() {
			wait = max(0, min(lineQuiet-time.Since(o.lastByte), linePatience-time.Since(line.at)))
			if wait > 0 {
				o.mu.Unlock()
				return wait
			}
		}
		if o.midLine {
			text = "\n" + text
		}
		o.lines = o.lines[1:]
		if o.dropped > 0 && len(o.lines) == 0 {
			text += fmt.Sprintf("sglaunch: %d lines of its own are missing here: %s was blocked\n", o.dropped, o.name)
			o.dropped = 0
		}
		o.mu.Unlock()
		o.write([]byte(text))
		o.midLine = false
	}
}

// idle reports whether no output can follow, so that the line stands alone. The
// lock is held.
func (o *outlet) idle() bool { return len(o.feeds) == 0 }

func (o *outlet) current() (f *feed, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.feeds) == 0 {
		return nil, o.stopped && len(o.lines) == 0
	}
	return o.feeds[0], false
}

// barWait shortens a wait to the moment at which a bar in the journal is due,
// and writes one that is.
func (o *outlet) barWait(limit time.Duration) time.Duration {
	if o.journald == nil {
		return limit
	}
	o.write(o.journald.overdue(time.Now()))
	if wait := o.journald.wait(time.Now()); limit == 0 && wait < barEvery+1 || wait < limit {
		return max(wait, time.Millisecond)
	}
	return limit
}

// next goes on to the next attempt's output.
func (o *outlet) next(f *feed) {
	f.spool.unlisten(o.wake)
	if o.journald != nil {
		o.write(o.journald.rest())
	}
	o.mu.Lock()
	o.feeds = o.feeds[1:]
	o.mu.Unlock()
	if lost := o.lost; lost > 0 {
		o.lost = 0
		o.print(fmt.Sprintf("sglaunch: %d bytes of output are missing on %s: neither memory nor disk could hold them", lost, o.name))
	}
}

func (o *outlet) await(limit time.Duration) {
	if limit == 0 {
		<-o.wake
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-o.wake:
	case <-timer.C:
	}
}
