package shim

import (
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// stdin passes what is typed at our terminal on to the server's.
type stdin struct {
	from   int
	target atomic.Pointer[os.File]
	wake   bell
}

// attach says where typed bytes go from now on; nil stops the reading.
func (t *stdin) attach(master *os.File) {
	if t == nil {
		return
	}
	t.target.Store(master)
	t.wake.ring()
}

const (
	typedPoll       = 500 * time.Millisecond
	endOfTransmit   = 4 // Ctrl-D: what a terminal makes of the end of input
	backgroundPause = time.Second
)

// copyStdin starts to pass typed bytes on, if ours is a terminal.
func copyStdin(f *os.File) *stdin {
	if !isTerminal(f) {
		return nil
	}
	t := &stdin{from: fdOf(f), wake: newBell()}
	go t.copy()
	return t
}

// copy reads only while a server listens. Its thread blocks SIGTTIN: in the
// background a read then fails instead of stopping the whole launch, which the
// raw command would not have been either, since it does not read.
func (t *stdin) copy() {
	runtime.LockOSThread()
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGTTIN - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
	buf := make([]byte, 4<<10)
	for {
		to := t.target.Load()
		if to == nil {
			<-t.wake
			continue
		}
		ready := []unix.PollFd{{Fd: int32(t.from), Events: unix.POLLIN}}
		if n, _ := unix.Poll(ready, int(typedPoll.Milliseconds())); n <= 0 {
			continue
		}
		switch n, err := unix.Read(t.from, buf); {
		case n > 0:
			_, _ = to.Write(buf[:n])
		case n == 0 && err == nil:
			if ready[0].Revents&unix.POLLHUP != 0 {
				return // the terminal is gone
			}
			_, _ = to.Write([]byte{endOfTransmit})
		case ready[0].Revents&(unix.POLLHUP|unix.POLLNVAL) != 0:
			return
		default:
			time.Sleep(backgroundPause)
		}
	}
}
