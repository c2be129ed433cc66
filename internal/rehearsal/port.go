package rehearsal

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// FreePort finds a port of the loopback that nobody uses. It lies below those that
// Linux gives to outgoing connections (ip_local_port_range begins at 32768): one of
// these may be taken before the server that is to have it has come so far.
func FreePort() (int, error) {
	const first, last, tries = 10000, 32767, 100
	var err error
	for range tries {
		port := first + rand.IntN(last-first+1)
		l, refused := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if refused == nil {
			return port, l.Close()
		}
		err = refused
	}
	return 0, fmt.Errorf("cannot find a free port: %w", err)
}
