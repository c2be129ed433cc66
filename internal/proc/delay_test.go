package proc

import (
	"os"
	"testing"
)

func TestRunDelays(t *testing.T) {
	before := RunDelays(os.Getpid())
	if _, known := before[os.Getpid()]; !known {
		t.Fatalf("our first thread is not among %v", before)
	}
	for tid, after := range RunDelays(os.Getpid()) {
		if after < before[tid] {
			t.Errorf("thread %d waited %s, then %s", tid, before[tid], after)
		}
	}
	if got := RunDelays(1 << 30); len(got) != 0 {
		t.Errorf("a process that is not there: %v", got)
	}
}
