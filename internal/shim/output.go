package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"sglaunch/internal/rawlog"
	"sglaunch/internal/shim/wire"
)

// openPatience is how long the creation of a log may take before the server is
// started without it.
const openPatience = 5 * time.Second

// keepLog creates the raw log. A log that exists is an error, since it is
// another attempt's; a disk that refuses or hangs is not: the server matters
// more than its log.
func (s *shim) keepLog(sp *spool, spec wire.Spec) error {
	type opened struct {
		log *rawlog.Book
		err error
	}
	path := spec.Log
	done := make(chan opened, 1)
	go func() {
		log, err := rawlog.Create(path, rotation(spec.Rotate))
		done <- opened{log, err}
	}()
	take := func(o opened) error {
		if o.err == nil {
			sp.keep(o.log, s.troubleLater)
			return nil
		}
		sp.unkept()
		if errors.Is(o.err, fs.ErrExist) {
			return o.err
		}
		s.troubleLater(fmt.Sprintf("%v; the server goes on without, memory holds its last %d MiB", o.err, ringSize>>20))
		return nil
	}
	select {
	case o := <-done:
		return take(o)
	case <-time.After(openPatience):
		s.troubleLater(fmt.Sprintf("cannot create the log %q: the disk does not answer; the server is started without", path))
		go func() { _ = take(<-done) }()
		return nil
	}
}

// rotation is what a supervisor wants; one of an earlier sglaunch wants none.
func rotation(r *wire.Rotate) rawlog.Rotation {
	if r == nil {
		return rawlog.Rotation{}
	}
	return rawlog.Rotation{Size: r.Size, Age: time.Duration(r.Age), Keep: r.Keep}
}

// showOutput connects the output to the person's descriptors: standard error
// apart from standard output where they are apart on both sides.
func (s *shim) showOutput(st *stage) {
	sp := s.srv.spool
	switch {
	case s.o.Passthrough == "off":
	case s.out == s.err || st.master != nil:
		s.out.show(sp, both)
	default:
		s.out.show(sp, output)
		s.err.show(sp, errout)
	}
	if path := s.srv.spec.Errors; path != "" && st.master == nil {
		s.srv.copied = make(chan struct{})
		go copyLane(sp, path, s.troubleLater, s.srv.copied)
	}
}

// copyLane writes standard error into a log of its own.
func copyLane(sp *spool, path string, trouble func(string), copied chan struct{}) {
	defer close(copied)
	f, err := openLog(path)
	if err != nil {
		trouble(err.Error())
		return
	}
	defer f.Close()
	o := newOutlet(f, path, nil, trouble)
	o.show(sp, errout)
	o.stop()
	<-o.done
}

// openLog creates a log beside the raw one, for its owner alone.
func openLog(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot create the log: %w", err)
	}
	return f, nil
}

// pump reads one output of the server until nobody holds its other end.
func (s *shim) pump(src source, sp *spool, ended chan struct{}) {
	buf := make([]byte, chunk)
	pause := firstReopen
	for {
		n, err := src.from.Read(buf)
		if n > 0 {
			sp.add(buf[:n], src.lane)
			pause = firstReopen
		}
		if err == nil {
			continue
		}
		// A terminal that nobody has open reads as an error, and may be opened
		// again as long as the server lives.
		if !src.terminal || errors.Is(err, os.ErrClosed) || isClosed(ended) {
			break
		}
		awaitClose(ended, pause) // one more reading then takes what is left
		pause = min(2*pause, lastReopen)
	}
	s.do(func() { s.outputEnded(sp) })
}

// Pauses between two tries to read a terminal that nobody has open.
const (
	firstReopen = 20 * time.Millisecond
	lastReopen  = time.Second
)

func (s *shim) outputEnded(sp *spool) {
	if sp != s.srv.spool {
		return
	}
	if s.srv.pumps--; s.srv.pumps == 0 {
		s.drain(false)
	}
}

// drain closes the attempt's output; whoever reads it comes to its end now.
func (s *shim) drain(cut bool) {
	if s.facts.Drained {
		return
	}
	s.facts.Drained = true
	sp := s.srv.spool
	sp.end(cut)
	s.facts.Output = sp.size()
	if s.srv.stage != nil {
		s.srv.stage.close()
	}
	s.advanceEnding()
}

// cutAfter bounds the time that output may still come once the tree is gone.
func (s *shim) cutAfter(limit time.Duration) {
	attempt := s.facts.Attempt
	s.after(limit, func() {
		if s.facts.Attempt == attempt {
			s.drain(true)
		}
	})
}
