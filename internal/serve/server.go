package serve

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Options say what a Server serves. Status and Ask may be called from several
// goroutines at a time; a slow one delays its own client alone.
type Options struct {
	Path   string // of the socket; its folder exists
	Status func() Status
	// Ask takes every other request. What it returns is told to who asked; an
	// error is why it is refused.
	Ask func(Request) (map[string]any, error)
	// Look is how often it is looked whether the socket is there still; 0 means 5 s.
	Look time.Duration
}

// Bounds of what clients may cost.
const (
	clientsMost  = 64
	watchersMost = 48               // of these: who follows stays, and places are left for who asks
	requestLimit = 10 * time.Second // from connecting to the request's last byte
	answerLimit  = 10 * time.Second // for a client to take one line
	newsDepth    = 256              // events that wait for a slow watcher
)

// Server answers on a control socket until Close.
type Server struct {
	o       Options
	clients sync.WaitGroup
	guests  *guests
	over    chan struct{} // closed by Close

	mu       sync.Mutex
	listener *net.UnixListener
	closed   bool
	watchers map[*watcher]bool
}

// Listen opens the socket and begins to answer. The socket of a launch that
// nobody answers for is replaced.
func Listen(o Options) (*Server, error) {
	if err := clearAway(o.Path); err != nil {
		return nil, err
	}
	l, err := listen(o.Path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on the control socket %q: %w", o.Path, cause(err))
	}
	if o.Look <= 0 {
		o.Look = 5 * time.Second
	}
	s := &Server{o: o, listener: l, guests: newGuests(clientsMost), over: make(chan struct{}), watchers: map[*watcher]bool{}}
	s.clients.Go(func() { s.accept(l) })
	go s.stay()
	return s, nil
}

func (s *Server) accept(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, most likely: it may pass
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if !s.admit(conn) {
			_ = conn.Close()
			continue
		}
		s.clients.Go(func() {
			defer s.leave(conn)
			s.converse(conn)
		})
	}
}

// admit lets a client in, if it may and there is room.
func (s *Server) admit(conn *net.UnixConn) bool {
	if !permitted(conn) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && s.guests.enter(conn)
}

func (s *Server) leave(conn net.Conn) {
	_ = conn.Close()
	s.guests.leave(conn)
}

// converse hears one request and answers it.
func (s *Server) converse(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(requestLimit))
	r, err := readRequest(conn)
	switch {
	case errors.Is(err, errNoRequest), !s.guests.serve(conn):
	case err != nil:
		_ = send(conn, answer(s.o.Status(), EventRefused, err.Error()))
	case r.Do == DoStatus:
		_ = send(conn, s.o.Status())
	case r.Do == DoWatch:
		s.watch(conn)
	default:
		s.ask(conn, r)
	}
}

func (s *Server) ask(conn net.Conn, r Request) {
	r.By = r.who()
	event, text := EventAccepted, r.Do
	fields, err := s.o.Ask(r)
	if err != nil {
		event, text = EventRefused, err.Error()
	}
	e := answer(s.o.Status(), event, text)
	e.Fields = fields
	_ = send(conn, e)
}

// Close ends the service: who follows gets what is published so far, within
// bounds; the socket is removed.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.over)
	}
	for w := range s.watchers {
		close(w.news)
		delete(s.watchers, w)
	}
	s.mu.Unlock()
	err := s.listener.Close() // removes the file
	ended := make(chan struct{})
	go func() { s.clients.Wait(); close(ended) }()
	select {
	case <-ended:
		return err
	case <-time.After(closePatience):
	}
	for _, conn := range s.guests.all() {
		_ = conn.Close()
	}
	<-ended
	return err
}

// closePatience is how long clients may still read the last news.
const closePatience = time.Second

// send writes one line, within its time.
func send(conn net.Conn, v any) error {
	line, err := encodeLine(v)
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(answerLimit))
	_, err = conn.Write(line)
	return err
}
