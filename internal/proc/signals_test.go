package proc

import (
	"os"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCatches(t *testing.T) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGUSR2)
	defer signal.Stop(c)
	if !Catches(os.Getpid(), unix.SIGUSR2) {
		t.Error("a signal with a handler")
	}
	if Catches(os.Getpid(), unix.SIGKILL) {
		t.Error("a signal without one")
	}
	if Catches(1<<30, unix.SIGUSR2) {
		t.Error("nobody")
	}
}

// The first process may be a shim, and is signalled where the kernel permits it.
func TestSendToTheFirst(t *testing.T) {
	first, err := Identify(1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Send(first.ID, 0), unix.Kill(1, 0); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
