package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
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
