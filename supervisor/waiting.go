package supervisor

import (
	"context"
	"sync"
	"time"
)

// Whatever is waited for may hang: every wait ends, too, when its time is over.

// pause waits and reports whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// within gives work's answer, or none once ctx is over. Work that hangs is left
// behind.
func within[T any](ctx context.Context, work func() T) <-chan T {
	answer, found := make(chan T, 1), make(chan T, 1)
	go func() { found <- work() }()
	go func() {
		var none T
		select {
		case t := <-found:
			answer <- t
		case <-ctx.Done():
			answer <- none
		}
	}()
	return answer
}

// awaitGroup waits for goroutines to end, but not for ever.
func awaitGroup(group *sync.WaitGroup, limit time.Duration) {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// each hands over what comes through a channel, until the end has begun and the
// channel is empty. It is never closed: somebody who hangs may still send.
func each[T any](from <-chan T, ending <-chan struct{}, do func(T)) {
	for {
		select {
		case t := <-from:
			do(t)
			continue
		case <-ending:
		}
		select {
		case t := <-from:
			do(t)
		default:
			return
		}
	}
}
