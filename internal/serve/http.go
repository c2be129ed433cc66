package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// HTTPOptions say what is served over HTTP. Status and Metrics may be called
// from several goroutines at a time.
type HTTPOptions struct {
	Address string // host:port; the host is never empty
	Status  func() Status
	Metrics http.Handler // answers /metrics
}

// Bounds of what HTTP clients may cost.
const (
	httpClients  = 32
	headerLimit  = 5 * time.Second
	requestTime  = 10 * time.Second // from the first byte to the answer's last
	idleLimit    = 30 * time.Second
	headerBytes  = 8 << 10
	shutdownTime = time.Second
)

// HTTP answers status, health and metrics until Close. Nothing can be changed
// over it.
type HTTP struct {
	server *http.Server
	addr   net.Addr
	done   chan struct{}
}

// ListenHTTP begins to answer.
func ListenHTTP(o HTTPOptions) (*HTTP, error) {
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve HTTP on %q: %w", o.Address, cause(err))
	}
	hall := hall{l, newGuests(httpClients)}
	h := &HTTP{addr: l.Addr(), done: make(chan struct{}), server: &http.Server{
		Handler:           hall.during(http.TimeoutHandler(handler(o, !Exposed(o.Address)), requestTime/2, "no answer in time\n")),
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, guestKey{}, c) },
		ReadHeaderTimeout: headerLimit, ReadTimeout: requestTime, WriteTimeout: requestTime, IdleTimeout: idleLimit,
		MaxHeaderBytes: headerBytes, ErrorLog: log.New(io.Discard, "", 0),
	}}
	go func() {
		defer close(h.done)
		_ = h.server.Serve(hall) // ends by Close alone
	}()
	return h, nil
}

// Address is where it listens.
func (h *HTTP) Address() string { return h.addr.String() }

// Close ends the service. Who is being answered gets a moment more.
func (h *HTTP) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	err := h.server.Shutdown(ctx)
	if err != nil {
		err = h.server.Close()
	}
	<-h.done
	return err
}

// hall is a listener with places for so many.
type hall struct {
	net.Listener
	guests *guests
}

// guest is a connection that has a place until it is closed.
type guest struct {
	net.Conn
	guests *guests
}

type guestKey struct{} // of the guest in a request's context

func (l hall) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g := (&guest{c, l.guests}); l.guests.enter(g) {
			return g, nil
		}
		_ = c.Close()
	}
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.guests.leave(g)
	return g.Conn.Close()
}

// during answers requests; who is being answered keeps its place.
func (l hall) during(answer http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(guestKey{}).(net.Conn)
		if l.guests.serve(c) {
			defer l.guests.served(c)
			answer.ServeHTTP(w, r)
		}
	})
}

// Exposed reports whether others than this machine reach an address.
func Exposed(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return host != "localhost" && (err != nil || !ip.IsLoopback())
}

// Paths that are served.
const (
	PathHealth  = "/healthz"
	PathReady   = "/readyz"
	PathStatus  = "/status"
	PathMetrics = "/metrics"
)

func handler(o HTTPOptions, local bool) http.Handler {
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, ok bool, text string) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprintln(w, text)
	}
	mux.HandleFunc("GET "+PathHealth, func(w http.ResponseWriter, _ *http.Request) {
		s := o.Status()
		say(w, s.Alive(), s.Line())
	})
	mux.HandleFunc("GET "+PathReady, func(w http.ResponseWriter, _ *http.Request) {
		s := o.Status()
		say(w, s.Serves(), s.Line())
	})
	mux.HandleFunc("GET "+PathStatus, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(o.Status()) // who does not read it has gone
	})
	mux.Handle("GET "+PathMetrics, o.Metrics)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		say(w, true, strings.Join([]string{PathHealth, PathReady, PathStatus, PathMetrics}, "\n"))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if local && !isLocalName(r.Host) {
			// A page in a browser of this machine may have its own name point
			// here, and would be allowed to read the answer.
			http.Error(w, "this address is asked by its number or as localhost", http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func isLocalName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost"
}

// Alive reports whether sglaunch works on the launch: it has not given up.
func (s Status) Alive() bool { return s.Exit == nil }

// Serves reports whether requests may be sent: the server is announced, and
// its end has not begun.
func (s Status) Serves() bool {
	return s.Announced && s.Ready && s.Stop == nil && s.Exit == nil && s.State == "up"
}
