package proc

import (
	"errors"
	"os"
	"strconv"
	"time"
)

// errStuck says that the kernel did not answer in time.
var errStuck = errors.New("the kernel does not answer: the process may be in D state")

// stuckLimit bounds the goroutines that may hang in the kernel at one time;
// beyond it guarded reads give up at once.
const stuckLimit = 64

var stuck = make(chan struct{}, stuckLimit)

// guarded runs a read that may block in the kernel, and waits for it no longer
// than the limit. A read that comes back later frees its place.
func guarded[T any](limit time.Duration, read func() (T, error)) (T, error) {
	var none T
	select {
	case stuck <- struct{}{}:
	default:
		return none, errStuck
	}
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { <-stuck }()
		value, err := read()
		done <- answer{value, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.value, a.err
	case <-timer.C:
		return none, errStuck
	}
}

// readLimit is how long one /proc file may take.
const readLimit = 100 * time.Millisecond

// fileOf reads /proc/PID/NAME, at most limit bytes, within readLimit.
func fileOf(pid int, name string, limit int) ([]byte, error) {
	return guarded(readLimit, func() ([]byte, error) {
		f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/" + name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		var text []byte
		chunk := make([]byte, min(limit, 8<<10))
		for len(text) < limit {
			n, err := f.Read(chunk[:min(len(chunk), limit-len(text))])
			text = append(text, chunk[:n]...)
			if n == 0 || err != nil {
				break
			}
		}
		return text, nil
	})
}
