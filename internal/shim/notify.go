package shim

import (
	"net"
	"os"
	"strconv"
	"time"
)

// notifier speaks to systemd, if it started us. It is the shim that speaks,
// since it is the main process and lives as long as the launch.
type notifier struct{ conn *net.UnixConn }

func newNotifier() *notifier {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil
	}
	return &notifier{conn}
}

// send never waits: a message that systemd does not take is dropped.
func (n *notifier) send(state string) {
	if n != nil && state != "" {
		_ = n.conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		_, _ = n.conn.Write([]byte(state))
	}
}

// watchdogEvery is half of what systemd allows; 0 means that it does not watch.
func watchdogEvery() time.Duration {
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	pid := os.Getenv("WATCHDOG_PID")
	if err != nil || usec <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(usec) * time.Microsecond / 2
}

// sd tells systemd a state.
func (s *shim) sd(state string) { s.notifier.send(state) }

// pet keeps the watchdog quiet as long as the loop gets its turn.
func (s *shim) pet(every time.Duration) {
	s.sd("WATCHDOG=1")
	s.after(every, func() { s.pet(every) })
}
