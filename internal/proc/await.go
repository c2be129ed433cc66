package proc

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// endPoll is how often an ending process is looked at where the kernel cannot
// tell of its end (before 5.3).
const endPoll = 200 * time.Millisecond

// AwaitEnd returns nil when a process that need not be our child has ended, or
// the context's error.
func AwaitEnd(ctx context.Context, id ID) error {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	for Alive(id) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			time.Sleep(endPoll)
			continue
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(endPoll.Milliseconds()))
	}
	return nil
}
