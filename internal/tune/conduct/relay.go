package conduct

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sglaunch/internal/statedir"
)

// relay stands between systemd and the launch that serves in the morning:
// systemd listens to the tuner alone, its main process. It tells what the night
// is at, keeps the watchdog quiet, and passes on that the server is ready. It
// never passes on that a launch stops, unless the whole service does: the next
// finalist follows. A nil relay is a night without a service manager.
type relay struct {
	out      *net.UnixConn // to systemd
	in       *net.UnixConn // from the launch
	path     string        // of in
	stopping atomic.Bool
	done     chan struct{} // ends the watchdog
	stopped  chan struct{}
}

const sendLimit = 100 * time.Millisecond

// openRelay listens on path, where systemd started us; nil where it did not.
func openRelay(path string) (*relay, error) {
	systemd := os.Getenv("NOTIFY_SOCKET")
	if systemd == "" {
		return nil, nil
	}
	out, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: systemd, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("cannot speak to systemd: %w", err)
	}
	_ = os.Remove(path) // of a tuner that was killed
	in, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot pass on to systemd what serves: %w; set SGLAUNCH_RUNTIME to a shorter folder", err), out.Close())
	}
	_ = os.Chmod(path, statedir.FileMode)
	r := &relay{out: out, in: in, path: path, done: make(chan struct{}), stopped: make(chan struct{})}
	go r.pass()
	go r.pet(watchdogEvery())
	return r, nil
}

// watchdogEvery is half of what systemd allows; 0: it does not watch.
func watchdogEvery() time.Duration {
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || usec <= 0 {
		return 0
	}
	return time.Duration(usec) * time.Microsecond / 2
}

func (r *relay) pet(every time.Duration) {
	defer close(r.stopped)
	if every == 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		r.say("WATCHDOG=1")
		select {
		case <-tick.C:
		case <-r.done:
			return
		}
	}
}

// pass hands on what the launch says, until the relay is closed.
func (r *relay) pass() {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.in.Read(buf)
		if err != nil {
			return
		}
		if text := r.fit(string(buf[:n])); text != "" {
			r.say(text)
		}
	}
}

// fit leaves out what only a main process may say, and the end of a launch.
func (r *relay) fit(message string) string {
	var kept []string
	for line := range strings.SplitSeq(message, "\n") {
		name, _, _ := strings.Cut(line, "=")
		switch {
		case name == "READY", name == "STATUS", name == "EXTEND_TIMEOUT_USEC", name == "STOPPING" && r.stopping.Load():
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// say tells systemd; a message that it does not take is dropped.
func (r *relay) say(text string) {
	if r == nil {
		return
	}
	_ = r.out.SetWriteDeadline(time.Now().Add(sendLimit))
	_, _ = r.out.Write([]byte(text))
}

// stop tells that the whole service ends.
func (r *relay) stop() {
	if r != nil && !r.stopping.Swap(true) {
		r.say("STOPPING=1")
	}
}

func (r *relay) close() {
	if r == nil {
		return
	}
	close(r.done)
	<-r.stopped
	_ = r.in.Close()
	_ = r.out.Close()
	_ = os.Remove(r.path)
}
