package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sglaunch/internal/shim/wire"
)

// outboxSize bounds the messages that wait for a supervisor that does not read.
// One that lets so many pile up is not working; it is replaced.
const outboxSize = 16 << 10

// stretchSize bounds the output in one frame.
const stretchSize = 256 << 10

var errDeaf = errors.New("the supervisor does not read what it is sent")

// link is the connection to one supervisor. Sending never blocks the shim: one
// goroutine writes what is queued, and between the messages the output that the
// supervisor has asked for.
type link struct {
	conn *wire.Conn
	wake bell // there are messages, or the link has changed
	more bell // there is output

	mu     sync.Mutex
	outbox []wire.Message
	err    error // the link is of no use any more
	fresh  *feed // output asked for since the last look
}

// socketPair returns both ends of the link. Theirs is for the supervisor alone.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a socket pair: %w", err)
	}
	// Ours alone does not block: Close must end a pending read or write.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, fmt.Errorf("cannot make a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "supervisor"), os.NewFile(uintptr(fds[1]), "shim"), nil
}

func newLink(ours io.ReadWriteCloser) *link {
	l := &link{conn: wire.NewConn(ours), wake: newBell(), more: newBell()}
	go l.write()
	return l
}

// send queues a message.
func (l *link) send(m wire.Message) {
	l.mu.Lock()
	if len(l.outbox) < outboxSize {
		l.outbox = append(l.outbox, m)
	} else if l.err == nil {
		l.err = errDeaf
	}
	deaf := l.err == errDeaf
	l.mu.Unlock()
	if deaf {
		l.conn.Close()
	}
	l.wake.ring()
}

// stream sends output from an offset on, then what follows, then Drained. Nobody
// else says Drained: a server that ends at once would seem to have said nothing,
// if its end came before the supervisor has asked for its output.
func (l *link) stream(s *spool, offset int64) {
	l.mu.Lock()
	l.fresh = &feed{spool: s, offset: offset}
	l.mu.Unlock()
	s.listen(l.more)
	l.wake.ring()
}

// close ends the link; what is queued is not sent any more.
func (l *link) close() {
	l.mu.Lock()
	if l.err == nil {
		l.err = os.ErrClosed
	}
	l.mu.Unlock()
	l.conn.Close()
	l.wake.ring()
}

// brokenBy says what is wrong with a link that has ended; nil if the supervisor
// has merely ended too, which an error of its socket shows.
func (l *link) brokenBy(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == errDeaf {
		return errDeaf
	}
	for _, usual := range []error{io.EOF, io.ErrUnexpectedEOF, os.ErrClosed, unix.ECONNRESET} {
		if errors.Is(err, usual) {
			return nil
		}
	}
	return err
}

func (l *link) write() {
	var f *feed
	buf := make([]byte, stretchSize)
	for {
		messages, fresh, err := l.take()
		if fresh != nil {
			f = l.replace(f, fresh)
		}
		for _, m := range messages {
			if err == nil {
				err = l.conn.Send(m)
			}
		}
		more := false
		if f != nil && err == nil {
			f, more, err = l.output(f, buf)
		}
		if err != nil {
			l.replace(f, nil)
			l.close()
			return
		}
		if more {
			continue
		}
		select {
		case <-l.wake:
		case <-l.more:
		}
	}
}

func (l *link) take() ([]wire.Message, *feed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	messages, fresh := l.outbox, l.fresh
	l.outbox, l.fresh = nil, nil
	return messages, fresh, l.err
}

func (l *link) replace(old, fresh *feed) *feed {
	if old != nil && (fresh == nil || fresh.spool != old.spool) {
		old.spool.unlisten(l.more)
	}
	return fresh
}

// output sends the next piece, one frame; more says that another may be there.
func (l *link) output(f *feed, buf []byte) (rest *feed, more bool, err error) {
	attempt := f.spool.attempt
	r := f.spool.read(buf, f.offset, both)
	f.offset = r.next
	switch {
	case r.n > 0:
		return f, !r.all, l.conn.SendOutput(wire.Output{Attempt: attempt, Offset: r.at, Data: buf[:r.n]})
	case r.lost > 0:
		gap := wire.Message{Type: wire.Gap, Attempt: attempt, From: r.next - r.lost, To: r.next, At: now()}
		return f, true, l.conn.Send(gap)
	case r.end:
		f.spool.unlisten(l.more)
		return nil, false, l.conn.Send(drainedMessage(f.spool))
	}
	return f, false, nil
}

func drainedMessage(s *spool) wire.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.Message{Type: wire.Drained, Attempt: s.attempt, To: s.to, Cut: s.cut, At: now()}
}
