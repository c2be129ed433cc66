package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/plain"
)

// Options say what a Server serves. Status and Ask may be called from several
// goroutines at a time; a slow one delays its own client alone.
type Options struct {
	Path   string // of the socket; its folder exists
	Status func() Status
	// Ask takes every other request. What it returns is told to who asked; an
	// error is why it is refused.
	Ask func(Request) (map[string]any, error)
}

// Bounds of what clients may cost.
const (
	clientsMost  = 64
	requestLimit = 10 * time.Second // from connecting to the request's last byte
	answerLimit  = 10 * time.Second // for a client to take one line
	newsDepth    = 256              // events that wait for a slow watcher
)

// Server answers on a control socket until Close.
type Server struct {
	o        Options
	listener *net.UnixListener
	clients  sync.WaitGroup
	guests   *guests

	mu       sync.Mutex
	closed   bool
	watchers map[*watcher]bool
}

// watcher is a client that follows. Its channel never makes anybody wait.
type watcher struct {
	news chan Envelope
	lost int // since it was last told; guarded by the server's mutex
}

// Listen opens the socket and begins to answer. The socket of a launch that
// nobody answers for is replaced.
func Listen(o Options) (*Server, error) {
	if err := clear(o.Path); err != nil {
		return nil, err
	}
	l, err := listen(o.Path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on the control socket %q: %w", o.Path, cause(err))
	}
	s := &Server{o: o, listener: l, guests: newGuests(clientsMost), watchers: map[*watcher]bool{}}
	s.clients.Go(s.accept)
	return s, nil
}

// clear removes a socket that nobody answers on, and nothing else.
func clear(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot use the control socket %q: %w", path, cause(err))
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("cannot use %q as the control socket: it is no socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot use the control socket %q: another process answers there", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot replace the control socket %q: %w", path, cause(err))
	}
	return nil
}

// listen binds the socket with mode 0600: on Linux the mode of a socket file is
// that which its descriptor has before, so that it is at no moment anybody
// else's.
func listen(path string) (*net.UnixListener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }); e != nil {
			return e
		}
		return err
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
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

// permitted: root and the user of the launch, as the kernel knows them.
func permitted(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); e != nil || err != nil {
		return false
	}
	return cred.Uid == 0 || int(cred.Uid) == os.Geteuid()
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

// watch follows the launch until it ends or the client goes.
func (s *Server) watch(conn net.Conn) {
	w := s.follow()
	defer s.unfollow(w)
	if send(conn, s.o.Status()) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	gone := make(chan struct{})
	go func() { // a watcher says nothing more; a read ends when it goes, or when we close
		defer close(gone)
		_, _ = conn.Read(make([]byte, 1))
	}()
	defer func() { _ = conn.Close(); <-gone }()
	for {
		select {
		case e, ok := <-w.news:
			if !ok || s.tellLost(conn, w) != nil || send(conn, e) != nil {
				return
			}
		case <-gone:
			return
		}
	}
}

// tellLost says how much a slow watcher has missed.
func (s *Server) tellLost(conn net.Conn, w *watcher) error {
	s.mu.Lock()
	lost := w.lost
	w.lost = 0
	s.mu.Unlock()
	if lost == 0 {
		return nil
	}
	e := answer(s.o.Status(), EventLost, fmt.Sprintf("%d events were lost: they were not read in time", lost))
	e.Fields = map[string]any{"source": "control socket", "lost": lost}
	return send(conn, e)
}

func (s *Server) follow() *watcher {
	w := &watcher{news: make(chan Envelope, newsDepth)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		close(w.news)
		return w
	}
	s.watchers[w] = true
	return w
}

func (s *Server) unfollow(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, w)
}

// Publish tells all who follow. It never waits.
func (s *Server) Publish(e Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		select {
		case w.news <- e:
		default:
			w.lost++
		}
	}
}

// Close ends the service: who follows gets what is published so far, within
// bounds; the socket is removed.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
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

// cause drops operation and path, which the message has in its own words.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return plain.Error(err)
}
