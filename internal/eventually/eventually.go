// Package eventually lets tests wait for what processes, files and goroutines come to
// in a time of their own.
package eventually

import (
	"testing"
	"time"
)

// limit is as long as a busy machine may need; what works takes a moment.
const limit = 20 * time.Second

// True asks until it is so, and fails the test where it never is. what ends the
// sentence "waited in vain for ...".
func True(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !so(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond) // the pause of a poll
	}
}
