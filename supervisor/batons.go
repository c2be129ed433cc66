package supervisor

import (
	"context"
	"strings"
	"sync"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/jitlock"
)

// batons knows the compile locks that an attempt was seen to hold, so that what
// its end leaves standing does not stop the next one for ever.
type batons struct {
	mu    sync.Mutex
	dirs  []string // caches of the server
	seen  map[string]jitlock.Lock
	next  time.Time // not before this the next look
	looks bool      // one is under way, or hangs
}

// batonPause is the time between two looks while compilers work, batonLimit how
// long one is waited for; slow storage may take as long as it likes.
const (
	batonPause = 5 * time.Second
	batonLimit = 2 * time.Second
)

// caches are those that the server of this launch may use, its private ones
// included.
func (h *hands) caches() []string {
	command := h.parsed()
	getenv := func(name string) string { v, _ := command.Getenv(name); return v }
	return append(history.JITCaches(getenv), h.launch.private())
}

// look takes note, aside and at most now and then, of the batons that these
// processes hold.
func (b *batons) look(ctx context.Context, pids []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looks || time.Now().Before(b.next) {
		return
	}
	b.looks, b.next = true, time.Now().Add(batonPause)
	dirs := b.dirs
	go func() {
		ctx, cancel := context.WithTimeout(ctx, batonLimit)
		defer cancel()
		found := jitlock.Find(ctx, dirs, pids)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.looks = false
		b.note(found)
	}()
}

// note keeps the batons that somebody was found to hold.
func (b *batons) note(found []jitlock.Lock) {
	for _, l := range found {
		if l.Kind == jitlock.Baton && l.Holder != 0 {
			b.seen[l.Path] = l
		}
	}
}

// begin forgets the attempt before.
func (b *batons) begin(dirs []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirs, b.seen, b.next = dirs, map[string]jitlock.Lock{}, time.Time{}
}

// clear removes what the attempt, all of whose processes are gone, has left, and
// returns in words what it did.
func (b *batons) clear(ctx context.Context) (done []string) {
	b.mu.Lock()
	left := b.seen
	b.seen = map[string]jitlock.Lock{}
	b.mu.Unlock()
	for _, l := range left {
		switch removed, err := jitlock.Clear(ctx, l); {
		case err != nil:
			done = append(done, err.Error())
		case removed:
			done = append(done, "removed the compile lock that the ended compile left: "+l.Path)
		}
	}
	return done
}

// clearBatons does so within its limit; storage that hangs is left behind.
func (h *hands) clearBatons(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, batonLimit)
	defer cancel()
	for _, text := range <-within(ctx, func() []string { return h.watch.batons.clear(ctx) }) {
		h.note("evidence", text)
	}
}

// locks lists the compile locks that stand now, for the evidence; stale are, in
// words, those that nobody holds.
func (h *hands) locks(ctx context.Context) (table, stale string) {
	ctx, cancel := context.WithTimeout(ctx, batonLimit)
	defer cancel()
	var all, old []string
	for _, l := range <-within(ctx, func() []jitlock.Lock { return jitlock.Find(ctx, h.caches(), nil) }) {
		all = append(all, l.String())
		if l.Stale() {
			old = append(old, l.String())
		}
	}
	if len(all) == 0 {
		return "no compile lock was found\n", ""
	}
	return strings.Join(all, "\n") + "\n", strings.Join(old, "; ")
}
