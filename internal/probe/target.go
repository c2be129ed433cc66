package probe

import (
	"net"
	"strconv"

	"sglaunch/internal/sglangcmd"
)

// Target says where the server that a command starts will listen. It is false
// where the command is not recognisably SGLang.
func Target(argv, env []string) (url string, ok bool) {
	c := sglangcmd.Parse(argv, env, "")
	if !c.SGLang() {
		return "", false
	}
	s := c.Server()
	return "http://" + net.JoinHostPort(reachable(s.Host), strconv.Itoa(s.Port)), true
}

// reachable turns an address to bind into one to connect to.
func reachable(host string) string {
	switch host {
	case "", "0.0.0.0":
		return "127.0.0.1"
	case "::", "[::]":
		return "::1"
	}
	return host
}
