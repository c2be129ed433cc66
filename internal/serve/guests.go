package serve

import (
	"maps"
	"net"
	"slices"
	"sync"
)

// guests are the connections of a server that has places for so many. Who takes a
// place and asks nothing gives it up to the next: else a few dozen idle clients would
// make a launch look silent, or dead to whoever asks for its health.
type guests struct {
	most int

	mu      sync.Mutex
	waiting []net.Conn // nothing of theirs is being answered; the longest first
	busy    map[net.Conn]bool
}

func newGuests(most int) *guests { return &guests{most: most, busy: map[net.Conn]bool{}} }

// enter gives a connection a place, that of another where all are taken; it is
// false where everybody's request is being answered.
func (g *guests) enter(c net.Conn) bool {
	out, ok := g.place(c)
	if out != nil {
		_ = out.Close() // whoever serves it finds out
	}
	return ok
}

func (g *guests) place(c net.Conn) (out net.Conn, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting)+len(g.busy) >= g.most {
		if len(g.waiting) == 0 {
			return nil, false
		}
		out, g.waiting = g.waiting[0], g.waiting[1:]
	}
	g.waiting = append(g.waiting, c)
	return out, true
}

// serve marks a connection whose request has come; it is false for one that has
// lost its place.
func (g *guests) serve(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, c)
	if i < 0 {
		return g.busy[c]
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	g.busy[c] = true
	return true
}

// served: its request is answered, and another may come.
func (g *guests) served(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy[c] {
		delete(g.busy, c)
		g.waiting = append(g.waiting, c)
	}
}

// leave gives a place back.
func (g *guests) leave(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.busy, c)
	g.waiting = slices.DeleteFunc(g.waiting, func(w net.Conn) bool { return w == c })
}

// all are the connections that have a place.
func (g *guests) all() []net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.AppendSeq(slices.Clone(g.waiting), maps.Keys(g.busy))
}
