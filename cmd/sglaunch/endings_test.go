package main

import (
	"os"
	"syscall"
	"testing"

	"sglaunch/internal/eventually"
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

// What follows a launch ends when its reader has left, as in `| head -1`.
func TestReaderLeaves(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	following, stop := untilUnread(t.Context(), &output{to: w})
	defer stop()
	if unread(w) {
		t.Error("it is read")
	}
	r.Close()
	eventually.True(t, "it ends", func() bool { return following.Err() != nil })
}
