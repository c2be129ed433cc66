package supervisor

import (
	"context"
	"sync"
	"testing"
	"time"

	"sglaunch/internal/shim/wire"
)

// At the end all that was told is written, and work that hangs, as a look at a
// disk does, is left behind: what it says later is heard by nobody and hurts nobody.
func TestCloseLeavesBehindWhatHangs(t *testing.T) {
	orders, ending := make(chan int, 8), make(chan struct{})
	var told []int
	var writers sync.WaitGroup
	orders <- 1
	orders <- 2
	close(ending)
	writers.Go(func() { each(orders, ending, func(n int) { told = append(told, n) }) })
	writers.Wait()
	if len(told) != 2 {
		t.Errorf("told %v", told)
	}

	ctx, cancel := context.WithCancel(context.Background())
	h := &hands{ctx: ctx, orders: make(chan wire.Message), ending: ending}
	cancel()
	h.order(wire.Message{}) // returns, though nobody takes it any more

	hangs := make(chan struct{})
	h.work.Go(func() { <-hangs })
	began := time.Now()
	awaitGroup(&h.work, 10*time.Millisecond)
	if waited := time.Since(began); waited < 10*time.Millisecond || waited > workMargin {
		t.Errorf("what hangs was waited for %s", waited)
	}
	close(hangs)
	h.work.Wait()
}
