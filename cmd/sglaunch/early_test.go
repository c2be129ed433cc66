package main

import (
	"bytes"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A launch that is stopped while it still looks at what it will need ends in
// order: the looks that are under way have words left to say when it ends.
func TestStoppedWhileItLooks(t *testing.T) {
	dir := t.TempDir()
	for i := range 6 {
		l := startLaunch(t, dir, nil, "run", "--server.name=early", "--", "sleep", "1000")
		journals := filepath.Join(dir, "state", "launches", "*-early-*", "journal.jsonl")
		poll := time.NewTicker(time.Millisecond)
		for begun, _ := filepath.Glob(journals); len(begun) <= i; begun, _ = filepath.Glob(journals) {
			select {
			case <-poll.C:
			case <-l.done:
				t.Fatalf("it ended before it was stopped:\n%s", l.stderr.bytes())
			}
		}
		poll.Stop()
		l.signal(syscall.SIGTERM)
		if code := l.wait(); code != exitOK {
			t.Errorf("exit code %d", code)
		}
		if said := l.stderr.bytes(); bytes.Contains(said, []byte("the supervisor")) || bytes.Contains(said, []byte("panic")) {
			t.Fatalf("stopped %d. time:\n%s", i+1, said)
		}
	}
}
