package supervisor

import (
	"context"
	"time"

	"sglaunch/internal/history"
)

// Bounds of the removal of old launches: beside a launch that begins, and of
// one that ends, which somebody waits for. What stays, the next one removes.
const (
	tidyBeside = time.Minute
	tidyLast   = 3 * time.Second
)

// tidy removes what is beyond [log] keep. It never waits longer than limit,
// even where the disk hangs, and tells a person only what it could not remove.
func (s Setup) tidy(limit time.Duration, tell func(string)) {
	if s.Settings.Keep == (history.Keep{}) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	done := make(chan error, 1)
	go func() {
		_, err := history.Prune(ctx, s.State, s.Settings.Keep, time.Now())
		done <- err
		cancel()
	}()
	select {
	case err := <-done:
		if err != nil {
			tell("old launches stay: " + err.Error())
		}
	case <-ctx.Done():
	}
}
