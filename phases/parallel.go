package phases

import (
	"bytes"
	"io"
	"runtime"
)

// A stretch is a chunk of a stream on its way from the reader through a survey
// to the tracker. It ends at the end of a line where that is possible.
type stretch struct {
	survey *survey
	buf    []byte
	chunk  []byte // the part of buf that is read now
	rest   []byte // behind it: the begin of a line
	torn   bool   // the chunk begins inside a line
	err    error  // what ended the stream, behind the chunk
	done   chan struct{}
}

// maxSurveyors bounds the memory of a reading on a large machine.
const maxSurveyors = 8

// readStretches reads a stream to its end, in stretches of a size. Surveys run
// beside each other and beside the tracker, which reads what they leave over, in
// order. It returns what ended the stream.
func (t *Tracker) readStretches(r io.Reader, size int) error {
	workers := min(runtime.GOMAXPROCS(0), maxSurveyors)
	moving := 2*workers + 2 // stretches that are read and surveyed
	free := make(chan *stretch, moving+maxHeld)
	ordered, toSurvey := make(chan *stretch, cap(free)), make(chan *stretch, cap(free))
	made := 0
	supply := func(held int) {
		for ; made-held < moving; made++ {
			s := &stretch{survey: newSurvey(t.rules), buf: make([]byte, size), done: make(chan struct{}, 1)}
			t.teach(s.survey)
			free <- s
		}
	}
	supply(0)
	for range workers {
		go func() {
			for s := range toSurvey {
				s.survey.look(s.chunk)
				s.done <- struct{}{}
			}
		}()
	}
	go func() {
		defer close(ordered)
		defer close(toSurvey)
		var last *stretch
		for last == nil || last.err == nil {
			s := <-free
			s.fill(r, last)
			ordered <- s
			toSurvey <- s
			last = s
		}
	}()
	var err error
	var held []*stretch
	for s := range ordered {
		<-s.done
		err = s.err
		held = append(held, s)
		ready := t.hold(held)
		if err != nil {
			ready = len(held)
		}
		for _, s := range held[:ready] {
			t.feedSurveyed(s)
			t.teach(s.survey)
			free <- s
		}
		held = append(held[:0], held[ready:]...)
		supply(len(held))
	}
	return err
}

// fill reads the next chunk: what the one before left over, and then what comes.
// last may be read by others meanwhile; its rest is not changed before fill has
// returned.
func (s *stretch) fill(r io.Reader, last *stretch) {
	n := 0
	s.torn = false
	if last != nil {
		n = copy(s.buf, last.rest)
		s.torn = len(last.chunk) > 0 && last.chunk[len(last.chunk)-1] != '\n'
	}
	for s.err = nil; s.err == nil && n < len(s.buf); {
		var more int
		more, s.err = r.Read(s.buf[n:])
		n += more
	}
	s.chunk, s.rest = s.buf[:n], nil
	if end := bytes.LastIndexByte(s.chunk, '\n') + 1; s.err == nil && end > 0 {
		s.chunk, s.rest = s.chunk[:end], s.chunk[end:]
	}
}
