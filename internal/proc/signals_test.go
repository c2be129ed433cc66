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
