package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endings are the signals by which a terminal, a person or a manager ends a command.
// A hangup that was ignored when we were started (nohup) stays ignored.
func endings() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// untilAsked ends with the first of them.
func untilAsked(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, endings()...)
}

// untilUnread is untilAsked for a command that follows: it ends, too, when nobody reads
// any more what it writes to w. Else `| head -1` would wait for the next event, which
// in a healthy service may be days away.
func untilUnread(ctx context.Context, w io.Writer) (context.Context, context.CancelFunc) {
	ctx, stop := untilAsked(ctx)
	f, ok := fileOf(w)
	if !ok {
		return ctx, stop
	}
	ctx, leave := context.WithCancel(ctx)
	go func() {
		for ctx.Err() == nil {
			if unread(f) {
				leave()
			}
			select {
			case <-time.After(unreadPoll):
			case <-ctx.Done():
			}
		}
	}()
	return ctx, func() { leave(); stop() }
}

// unreadPoll is how often it is looked whether there is a reader still.
const unreadPoll = time.Second

// unread reports whether the other end of a pipe or a socket is closed. A file has none.
func unread(f *os.File) bool {
	ends := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(ends, 0)
	return err == nil && n == 1 && ends[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
