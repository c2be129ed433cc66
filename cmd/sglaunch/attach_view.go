package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/rawlog"
	"sglaunch/internal/statedir"
	"sglaunch/internal/visible"
)

// attachPoll is how often a log that has no more is looked at again.
const attachPoll = 100 * time.Millisecond

// viewer shows one launch.
type viewer struct {
	folder         statedir.Launch
	lines          int // to begin with; of later attempts everything is shown
	stdout, stderr io.Writer

	attempt int
	log     *rawlog.Follower // nil: of no attempt yet
	midLine bool
}

// follow shows what comes until the shim has ended and all is shown, or ctx ends.
func (v *viewer) follow(ctx context.Context, shim proc.ID, told <-chan string) error {
	tick := time.NewTicker(attachPoll)
	defer tick.Stop()
	for {
		living := proc.Alive(shim) // before the reading: what is there by then is all
		if err := v.catchUp(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case text := <-told:
			v.say(text)
		case <-tick.C:
			if !living {
				return nil
			}
		}
	}
}

// catchUp shows everything that is in the log, attempt after attempt.
func (v *viewer) catchUp(ctx context.Context) error {
	for {
		if err := v.show(ctx); err != nil {
			return err
		}
		next, n, err := v.nextAttempt()
		if err != nil || next == nil {
			return err
		}
		// What came before the next attempt began is complete now.
		if err := v.show(ctx); err != nil {
			return err
		}
		v.close()
		v.log, v.attempt, v.lines = next, n, -1
	}
}

// show shows what is in the log of this attempt.
func (v *viewer) show(ctx context.Context) error {
	buf := make([]byte, 64<<10)
	for v.log != nil && ctx.Err() == nil {
		n, err := v.log.Read(buf)
		if n == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if n == 0 {
			return err
		}
		v.midLine = buf[n-1] != '\n'
		if _, err := v.stdout.Write(buf[:n]); err != nil {
			return fmt.Errorf("cannot show the output: %w", err)
		}
	}
	return nil
}

// nextAttempt opens the log of the attempt that follows, or of the newest one to
// begin with; nil where there is none yet.
func (v *viewer) nextAttempt() (*rawlog.Follower, int, error) {
	n := v.attempt + 1
	if v.log == nil {
		attempts, err := v.folder.Attempts()
		if err != nil || len(attempts) == 0 {
			return nil, 0, err
		}
		n = attempts[len(attempts)-1].N
	}
	log, err := rawlog.Follow(v.folder.Attempt(n).Log(), v.lines)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	return log, n, err
}

// say shows a line of sglaunch's own, on a line of its own.
func (v *viewer) say(text string) {
	if v.midLine {
		fmt.Fprintln(v.stderr)
		v.midLine = false
	}
	fmt.Fprintf(v.stderr, "sglaunch: %s\n", visible.Line(text))
}

func (v *viewer) close() {
	if v.log != nil {
		_ = v.log.Close()
	}
}
