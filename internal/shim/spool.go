package shim

import (
	"sync"
	"time"

	"sglaunch/internal/rawlog"
)

const (
	// ringSize bounds the output that is held in memory.
	ringSize = 4 << 20
	// diskPatience is how long the server may be held back for a disk that
	// falls behind; a disk that is slower than that loses bytes, not the server
	// its time.
	diskPatience = 500 * time.Millisecond
	// gather is how long output that follows other output may wait for company,
	// and gatherSize so many bytes of it that it waits no longer. Readers that are
	// woken for every few bytes pay several times what it costs to pass them on.
	gather     = 10 * time.Millisecond
	gatherSize = 1 << 20
)

// spool holds the output of one attempt: its last bytes in memory, all of them
// in the raw log. The server's output is appended and never waits for a reader.
// Readers keep their own offset and take what they want when they can: from
// memory, or from the log once they have fallen behind.
type spool struct {
	attempt int

	mu       sync.Mutex
	ring     []byte
	from, to int64 // the ring holds [from, to)
	ended    bool
	cut      bool // ended though somebody still held the other end
	turns    turns
	bells    map[bell]struct{}
	rung     time.Time // when the bells were, last
	untold   int       // bytes added since

	log      *rawlog.Book // nil: not open (yet)
	recorded int64        // the log has everything before, but for the holes
	holes    []span
	lame     bool          // the disk fails or is too slow: do not wait for it
	progress bell          // rung by the recorder
	sealed   chan struct{} // closed when the recorder has ended
}

// span is a stretch of output, [from, to).
type span struct{ from, to int64 }

func newSpool(attempt int) *spool {
	return &spool{
		attempt: attempt, ring: make([]byte, ringSize), bells: map[bell]struct{}{},
		lame: true, progress: newBell(), sealed: make(chan struct{}),
	}
}

// keep gives the spool its log and starts to write it. The log stays open as
// long as anybody may read the spool, and is closed with it by the runtime.
func (s *spool) keep(log *rawlog.Book, trouble func(string)) {
	s.mu.Lock()
	s.log, s.lame = log, false
	s.mu.Unlock()
	go s.record(trouble)
}

// unkept says that there will be no log.
func (s *spool) unkept() { close(s.sealed) }

// listen has b rung when there is more to read, until unlisten: at once after a
// pause, and else once some has gathered.
func (s *spool) listen(b bell) {
	s.mu.Lock()
	s.bells[b] = struct{}{}
	s.mu.Unlock()
	b.ring()
}

func (s *spool) unlisten(b bell) {
	s.mu.Lock()
	delete(s.bells, b)
	s.mu.Unlock()
}

// add appends output of one lane. p is at most ringSize/2 long.
func (s *spool) add(p []byte, l lane) {
	s.awaitRecorder(int64(len(p)))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.ring == nil {
		return
	}
	at := int(s.to % ringSize)
	n := copy(s.ring[at:], p)
	copy(s.ring, p[n:])
	s.to += int64(len(p))
	s.from = max(s.from, s.to-ringSize)
	s.turns.add(l, s.to)
	s.tell(len(p))
}

// tell rings the bells for n bytes more, soon if not now. The lock is held.
func (s *spool) tell(n int) {
	wait := gather - time.Since(s.rung)
	s.untold += n
	switch {
	case wait <= 0, s.untold >= gatherSize:
		s.ringAll()
	case s.untold == n: // the first of those that wait
		time.AfterFunc(wait, s.tellWaiting)
	}
}

func (s *spool) tellWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.untold > 0 {
		s.ringAll()
	}
}

// awaitRecorder gives a healthy disk the moment it needs before bytes that it
// has not taken are overwritten.
func (s *spool) awaitRecorder(n int64) {
	var timer *time.Timer
	for {
		s.mu.Lock()
		room := s.lame || s.to+n-ringSize <= s.recorded
		s.mu.Unlock()
		if room {
			return
		}
		if timer == nil {
			timer = time.NewTimer(diskPatience)
			defer timer.Stop()
		}
		select {
		case <-s.progress:
			timer.Reset(diskPatience)
		case <-timer.C:
			s.mu.Lock()
			s.lame = true
			s.mu.Unlock()
		}
	}
}

// end says that no more output comes.
func (s *spool) end(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended, s.cut = true, cut
		s.ringAll()
	}
}

// forget gives the memory back; what the log does not hold is lost.
func (s *spool) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.ring, s.from = nil, s.to
	s.ringAll()
}

func (s *spool) ringAll() {
	s.rung, s.untold = time.Now(), 0
	for b := range s.bells {
		b.ring()
	}
}

// size is the number of bytes so far.
func (s *spool) size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to
}

// left is how many bytes of a lane there are from an offset on.
func (s *spool) left(offset int64, l lane) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for offset < s.to {
		from, to, missing := s.turns.find(offset, s.to, l)
		n += to - from + missing
		offset = to + missing
	}
	return n
}

// stretch is the answer to a read: n bytes, or lost ones, or neither yet.
type stretch struct {
	n    int
	at   int64 // where the n bytes stand
	lost int64 // bytes that neither memory nor disk holds, before next
	next int64 // where to go on reading
	end  bool  // nothing more will come
	all  bool  // these are all there are now: who waits for the bell gets more at once
}

// read copies output of one lane, from an offset on, into buf. It waits for the
// disk where the bytes have left the memory, for nothing else.
func (s *spool) read(buf []byte, offset int64, l lane) stretch {
	s.mu.Lock()
	from, to, missing := s.turns.find(offset, s.to, l)
	switch {
	case missing > 0:
		s.mu.Unlock()
		return stretch{lost: missing, next: offset + missing}
	case from >= to:
		r := stretch{next: max(offset, from), end: s.ended}
		s.mu.Unlock()
		return r
	case from >= s.from:
		n := s.copyOut(buf[:min(int64(len(buf)), to-from)], from)
		r := stretch{n: n, at: from, next: from + int64(n)}
		r.all = r.next == s.to && !s.ended
		s.mu.Unlock()
		return r
	}
	to = min(to, s.from)
	log, kept, resume := s.log, s.keptFrom(from), s.resumeAfter(from)
	s.mu.Unlock()
	if log != nil {
		if begin := log.Begin(); from < begin { // rotated away
			resume = min(begin, to)
			return stretch{lost: resume - from, next: resume}
		}
	}
	if want := min(int64(len(buf)), to-from, kept-from); log != nil && want > 0 {
		if n, _ := log.ReadAt(buf[:want], from); n > 0 {
			return stretch{n: n, at: from, next: from + int64(n)}
		}
		resume = to // the log was cut short or cannot be read
	}
	resume = min(resume, to)
	return stretch{lost: resume - from, next: resume}
}

// copyOut copies from the ring; offset is in it.
func (s *spool) copyOut(buf []byte, offset int64) int {
	n := copy(buf, s.ring[offset%ringSize:])
	return n + copy(buf[n:], s.ring)
}

// keptFrom is the end of the stretch that the log holds from offset on; it is
// offset where the log holds nothing there.
func (s *spool) keptFrom(offset int64) int64 {
	end := max(s.recorded, offset)
	for _, h := range s.holes {
		if h.to > offset {
			return min(end, max(h.from, offset))
		}
	}
	return end
}

// resumeAfter is where output that the log lacks at offset can be had again.
func (s *spool) resumeAfter(offset int64) int64 {
	for _, h := range s.holes {
		if h.from <= offset && offset < h.to {
			return h.to
		}
	}
	return s.from
}
