package main

import (
	"syscall"
	"testing"
)

// Ctrl-\ ends a command in order, as Ctrl-C does: a tuner that crashed of it left the
// server of its trial behind.
func TestCtrlBackslash(t *testing.T) {
	send := func(sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	following, stop := untilAsked(t.Context())
	defer stop()
	send(syscall.SIGQUIT)
	<-following.Done()

	night, asked, stop := tuneSignals(t.Context())
	defer stop()
	send(syscall.SIGINT)
	if wish := <-asked; wish != "Ctrl-C" || night.Err() != nil {
		t.Errorf("Ctrl-C: %q, %v", wish, night.Err())
	}
	send(syscall.SIGQUIT)
	<-night.Done()
}
