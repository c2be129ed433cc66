package serve

import (
	"fmt"
	"net"
	"time"
)

// A watcher follows a launch until that ends. One that reads slowly loses events, is
// told how many, and makes nobody wait.

// watcher is a client that follows. Its channel never makes anybody wait.
type watcher struct {
	news chan Envelope
	lost int // since it was last told; guarded by the server's mutex
}

// watch follows the launch until it ends or the client goes.
func (s *Server) watch(conn net.Conn) {
	w := s.follow()
	if w == nil {
		_ = send(conn, answer(s.o.Status(), EventRefused, fmt.Sprintf("cannot follow: %d clients do", watchersMost)))
		return
	}
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

// follow is nil where there is no room for one more.
func (s *Server) follow() *watcher {
	w := &watcher{news: make(chan Envelope, newsDepth)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watchers) >= watchersMost {
		return nil
	}
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
