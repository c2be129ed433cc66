package conduct

import (
	"context"
	"time"
)

// wait is a pause that ends with its context.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// clockCheck is how often the clock on the wall is read: a timer stands still
// while a machine sleeps, a deadline does not.
const clockCheck = 20 * time.Second

// awaitTime returns when the clock on the wall has reached a time, or with the
// context's end.
func awaitTime(ctx context.Context, at time.Time) {
	at = at.Round(0) // without its monotonic reading
	for left := at.Sub(time.Now().Round(0)); left > 0 && ctx.Err() == nil; left = at.Sub(time.Now().Round(0)) {
		wait(ctx, min(left, clockCheck))
	}
}

// reached is closed when the clock has reached a time; stop ends the waiting.
func reached(at time.Time) (done <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		if awaitTime(ctx, at); ctx.Err() == nil {
			close(over)
		}
	}()
	return over, func() {
		cancel()
		<-ended
	}
}
