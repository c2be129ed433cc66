package shim

import (
	"errors"
	"os"
	"testing"
	"time"
)

// The runtime does not watch the server's terminal: it would be woken for each
// reading of it, and have nothing to do.
func TestTerminalIsNotWatched(t *testing.T) {
	master, slave, err := openTerminal()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	if err := master.SetReadDeadline(time.Now()); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("it is watched: %v", err)
	}
	if _, err := slave.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if n, err := master.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}
