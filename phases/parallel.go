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
	err    error  // what ended the stream, behind the chunk
	done   chan struct{}
}

// maxSurveyors bounds the memory of a reading on a large machine.
const maxSurveyors = 8

// inStretches reads a stream to its end and calls f for each stretch, in order,
// once it is surveyed. Surveys run beside each other and beside f. It returns
// what ended the stream.
func inStretches(r io.Reader, rules *RuleSet, size int, f func(*stretch)) error {
	workers := min(runtime.GOMAXPROCS(0), maxSurveyors)
	free := make(chan *stretch, 2*workers+2)
	ordered, toSurvey := make(chan *stretch, cap(free)), make(chan *stretch, cap(free))
	for range cap(free) {
		free <- &stretch{survey: newSurvey(rules), buf: make([]byte, size), done: make(chan struct{}, 1)}
	}
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
	for s := range ordered {
		<-s.done
		f(s)
		err = s.err
		free <- s
	}
	return err
}

// fill reads the next chunk: what the one before left over, and then what comes.
// last may be read by others meanwhile; its rest is not changed before fill has
// returned.
func (s *stretch) fill(r io.Reader, last *stretch) {
	n := 0
	if last != nil {
		n = copy(s.buf, last.rest)
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
