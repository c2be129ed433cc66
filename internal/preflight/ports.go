package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"sglaunch/internal/proc"
	"sglaunch/internal/sglangcmd"
)

// port is one that the server will bind.
type port struct {
	number int
	host   string // address to bind, as the server will; "" = all
	what   string // for a person: "--port"
	sure   bool   // certainly bound, and fatal if taken; else it depends on SGLang's version
}

const (
	attentionOffset = 233   // the ports of DP attention begin so far above --port
	attentionPorts  = 6     // and are so many, in all versions together
	lastPort        = 65535 // an offset that leads beyond it goes the other way
)

// plan lists the fixed ports of a server. Those that SGLang chooses by itself
// are not in it: it looks for free ones.
func plan(s sglangcmd.Server) []port {
	ports := []port{{s.Port, s.Host, "--port", true}}
	if s.NodeRank > 0 {
		return ports
	}
	_, rendezvous, given := splitHostPort(s.DistInit)
	switch {
	case given:
		ports = append(ports, port{rendezvous, "", "--dist-init-addr", true})
	case s.NCCLPort > 0:
		ports = append(ports, port{s.NCCLPort, "", "--nccl-port", true})
	}
	if s.DPAttention && s.DP > 1 {
		base := rendezvous + 1
		if !given {
			base = attentionBase(s.Port)
		}
		for i := range attentionPorts {
			ports = append(ports, port{base + i, "127.0.0.1", "DP attention", false})
		}
	}
	return ports
}

// attentionBase is the first fixed port of DP attention on one node.
func attentionBase(number int) int {
	if number+attentionOffset+attentionPorts > lastPort {
		return number - attentionOffset
	}
	return number + attentionOffset
}

func splitHostPort(address string) (host string, number int, ok bool) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, false
	}
	number, err = strconv.Atoi(text)
	return host, number, err == nil && number > 0
}

// BusyPorts names the ports of the command's plan that cannot be bound now,
// with their holders where they can be known; none where the command is not
// recognisably SGLang.
func BusyPorts(cmd sglangcmd.Command) []string {
	if !cmd.SGLang() {
		return nil
	}
	var busy []string
	for _, p := range plan(cmd.Server()) {
		if err := p.bind(context.Background()); errors.Is(err, syscall.EADDRINUSE) {
			busy = append(busy, p.taken())
		}
	}
	return busy
}

// checkPorts tries every port of the plan: SGLang finds a taken --port only
// after the whole load.
func checkPorts(ctx context.Context, l *look) []Check {
	var checks []Check
	free := 0
	for _, p := range plan(l.server) {
		if c, ok := p.check(ctx); !ok {
			checks = append(checks, c)
			continue
		}
		free++
	}
	if free > 0 {
		checks = append(checks, fine("%d of the ports that the server will bind are free", free))
	}
	return checks
}

// check tries one port; ok = it is free.
func (p port) check(ctx context.Context) (c Check, ok bool) {
	if p.number < 1 || p.number > lastPort {
		return fail("bad_argument", "choose a port from 1 to 65535", "port %d (%s) is out of range", p.number, p.what), false
	}
	err := p.bind(ctx)
	switch {
	case err == nil:
		return Check{}, true
	case errors.Is(err, syscall.EADDRINUSE) && p.sure:
		return fail("port_in_use", "stop its holder, or choose another port", "%s", p.taken()), false
	case errors.Is(err, syscall.EADDRINUSE):
		return warn("stop its holder, or choose another --port", "%s", p.taken()), false
	case errors.Is(err, syscall.EACCES):
		return fail("permission_denied", "choose a port above 1023", "port %d (%s) may not be bound by this user", p.number, p.what), false
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fail("bad_argument", "set --host to an address of this machine, or 0.0.0.0", "the address %q is none of this machine", p.host), false
	}
	return warn("see whether the server can bind it", "cannot try port %d (%s): %v", p.number, p.what, err), false
}

// bind tries to listen as the server will: uvicorn and torch set SO_REUSEADDR,
// so that connections in TIME_WAIT do not count, and so does Go's net package.
func (p port) bind(ctx context.Context) error {
	network, address := p.address()
	var config net.ListenConfig
	l, err := config.Listen(ctx, network, net.JoinHostPort(address, strconv.Itoa(p.number)))
	if err != nil {
		return err
	}
	return l.Close()
}

// address is what to bind.
func (p port) address() (network, address string) {
	switch ip, err := netip.ParseAddr(p.host); {
	case p.host == "" || p.host == "0.0.0.0":
		return "tcp4", "0.0.0.0"
	case err == nil && ip.Is4():
		return "tcp4", p.host
	case err == nil:
		return "tcp6", p.host
	}
	return "tcp", p.host
}

// taken says in words that the port is not free.
func (p port) taken() string {
	text := fmt.Sprintf("port %d (%s) is taken", p.number, p.what)
	switch pids, listened := proc.Listeners(p.number); {
	case len(pids) > 0:
		return text + " by " + proc.Who(pids[0])
	case listened:
		return text + " by a process that does not show itself"
	}
	return text + ": nobody listens, the kernel still holds it for connections that are ending"
}

// checkNodes looks at what a launch over several nodes needs beyond ports.
func checkNodes(ctx context.Context, l *look) []Check {
	s := l.server
	if s.Nodes == 1 {
		return nil
	}
	host, _, ok := splitHostPort(s.DistInit)
	switch ip, err := netip.ParseAddr(host); {
	case s.DistInit == "":
		return []Check{warn("set --dist-init-addr HOST:PORT of the first node, the same on all", "%d nodes and no --dist-init-addr", s.Nodes)}
	case !ok:
		return []Check{fail("bad_argument", "write it as HOST:PORT", "--dist-init-addr %q names no port", s.DistInit)}
	case s.NodeRank < 0 || s.NodeRank >= s.Nodes:
		return []Check{fail("bad_argument", "give each node its own --node-rank from 0 on", "--node-rank %d of %d nodes", s.NodeRank, s.Nodes)}
	case host == "localhost" || err == nil && ip.IsLoopback():
		return []Check{warn("use an address that the other nodes reach", "--dist-init-addr %q is reached from this node alone", s.DistInit)}
	}
	return []Check{fine("node %d of %d, meeting at %s", s.NodeRank, s.Nodes, s.DistInit)}
}
