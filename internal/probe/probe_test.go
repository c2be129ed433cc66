package probe

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sglaunch/internal/sglangcmd"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sglang is an HTTP server that answers by path; a path that is absent is 404.
type sglang map[string]int

func (s sglang) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, ok := s[r.URL.Path]
	if !ok {
		status = http.StatusNotFound
	}
	w.WriteHeader(status)
	fmt.Fprint(w, "{}")
}

func TestWhatHealthMeansByVersion(t *testing.T) {
	ready := sglang{"/health": 200, "/health_generate": 200, "/v1/models": 200}
	starting := sglang{"/health": 503, "/health_generate": 503, "/v1/models": 200}
	old := sglang{"/health": 200, "/health_generate": 503, "/v1/models": 200}
	for _, c := range []struct {
		name     string
		server   sglang
		options  Options
		want     Serving
		endpoint string
	}{
		{"ready", ready, Options{Version: "0.5.9"}, Up, "/health"},
		{"starting", starting, Options{Version: "0.5.9"}, Starting, "/health"},
		{"first honest", ready, Options{Version: "0.4.10.post2"}, Up, "/health"},
		{"local build", ready, Options{Version: "0.5.12.dev7+gabc"}, Up, "/health"},
		{"old is static", ready, Options{Version: "0.4.9.post6"}, Early, "/health"},
		{"unknown proves itself", ready, Options{}, Up, "/health_generate"},
		{"no real version", ready, Options{Version: "0.0.0.dev1+g1"}, Up, "/health_generate"},
		{"unknown and old", old, Options{}, Starting, "/health_generate"},
		{"unknown, must not generate", ready, Options{NoGenerate: "x"}, Early, "/health"},
		{"known, must not generate", ready, Options{NoGenerate: "x", Version: "0.5.9"}, Up, "/health"},
		{"follower", ready, Options{Follower: true, Version: "0.5.9"}, Early, "/health"},
		{"rust server", ready, Options{Static: true, Version: "0.5.17"}, Early, "/health"},
		{"no health", sglang{"/v1/models": 200}, Options{}, Early, "/v1/models"},
		{"nothing", sglang{}, Options{}, Unclear, "/v1/models"},
		{"error", sglang{"/health": 500}, Options{}, Failing, "/health"},
		{"locked", sglang{"/health": 401}, Options{}, Unclear, "/health"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.server)
			defer server.Close()
			c.options.URL = server.URL
			a := New(c.options).Probe(context.Background())
			if a.Serving != c.want || a.Endpoint != c.endpoint || a.Status != c.server.status(c.endpoint) || a.Took <= 0 || a.At.IsZero() {
				t.Errorf("got %+v, want %s by %s", a, c.want, c.endpoint)
			}
		})
	}
}

// A server in service that must not generate is asked nothing that does.
func TestAliveGeneratesNothingWhereItMustNot(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		model   string // of /model_info
		want    Serving
		asked   string // last
	}{
		"generates":         {Options{Version: "0.5.9"}, `{"is_generation": true}`, Up, "/health"},
		"model is not told": {Options{Version: "0.5.9"}, "", Up, "/health"},
		"prefill node":      {Options{Version: "0.5.9", NoGenerate: "x"}, "", Early, "/v1/models"},
		"reward model":      {Options{Version: "0.5.9"}, `{"is_generation": false}`, Early, "/v1/models"},
		"behind a script":   {Options{}, "", Early, "/v1/models"},
		"a person's own":    {Options{NoGenerate: "x"}, "", Up, "/mine"},
	} {
		var mu sync.Mutex
		var asked []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked = append(asked, r.URL.Path)
			mu.Unlock()
			switch {
			case r.URL.Path == "/model_info" && c.model != "":
				fmt.Fprint(w, c.model)
			case r.URL.Path == "/server_info" && name == "behind a script":
				fmt.Fprint(w, `{"disaggregation_mode": "decode"}`)
			case strings.HasSuffix(r.URL.Path, "_info"):
				http.NotFound(w, r)
			}
		}))
		c.options.URL = server.URL
		if c.asked == "/mine" {
			c.options.URL += c.asked
		}
		p := New(c.options)
		for range 2 {
			if a := p.Alive(context.Background()); a.Serving != c.want || a.Endpoint != c.asked {
				t.Errorf("%s: got %+v", name, a)
			}
		}
		server.Close()
		for _, path := range asked {
			if c.want == Early && strings.HasPrefix(path, "/health") {
				t.Errorf("%s: %s generates", name, path)
			}
		}
	}
}

func (s sglang) status(path string) int {
	if status, ok := s[path]; ok {
		return status
	}
	return http.StatusNotFound
}

// The server's own word on its version is asked for once.
func TestVersionFromTheServer(t *testing.T) {
	for path, version := range map[string]string{"/get_server_info": "0.4.6", "/server_info": "0.5.10"} {
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case path:
				if r.Header.Get("Authorization") != "Bearer k" {
					t.Errorf("no key sent to %s", path)
				}
				asked.Add(1)
				fmt.Fprintf(w, `{"tp_size": 8, "version": %q, "internal_states": []}`, version)
			case "/health":
				if len(r.Header["Authorization"]) > 0 {
					t.Error("the key was sent to /health, which needs none")
				}
			default:
				http.NotFound(w, r)
			}
		}))
		defer server.Close()
		p := New(Options{URL: server.URL, APIKey: "k"})
		want := map[string]Serving{"0.4.6": Early, "0.5.10": Up}[version]
		for range 3 {
			if a := p.Probe(context.Background()); a.Serving != want {
				t.Errorf("with version %s: got %+v, want %s", version, a, want)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("%s was asked %d times", path, asked.Load())
		}
	}
}

func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	a := New(Options{URL: "http://" + address}).Probe(context.Background())
	if !a.Refused || a.Serving != Down || a.Err != "connection refused" || a.Status != 0 {
		t.Errorf("got %+v", a)
	}
}

func TestServerThatHangs(t *testing.T) {
	let := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-let:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(let)
	a := New(Options{URL: server.URL, Limit: 20 * time.Millisecond}).Probe(context.Background())
	if a.Serving != Failing || a.Status != 0 || a.Refused || !strings.Contains(a.Err, "no answer within 20ms") {
		t.Errorf("got %+v", a)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if a := New(Options{URL: server.URL}).Probe(ctx); a.Serving != Unclear || a.Err == "" {
		t.Errorf("after a cancel: got %+v", a)
	}
}

// A server that accepts and says nothing, one that says nonsense, and one that
// never stops.
func TestOddServers(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"failing: closes":  func(c net.Conn) {},
		"unclear: babbles": func(c net.Conn) { c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n")) },
		"failing: endless": func(c net.Conn) {
			c.Write([]byte("HTTP/1.1 500 No\r\n\r\n"))
			for {
				if _, err := c.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		},
		"unclear: redirects": func(c net.Conn) {
			c.Write([]byte("HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			all.Go(func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Read(make([]byte, 1024))
				serve(c)
				c.Close()
			})
			a := New(Options{URL: "http://" + l.Addr().String(), Limit: 5 * time.Second}).Probe(context.Background())
			l.Close()
			all.Wait()
			if want, _, _ := strings.Cut(name, ":"); a.Serving != Serving(want) {
				t.Errorf("got %+v", a)
			}
		})
	}
}

func TestOneProbeInFlight(t *testing.T) {
	var now, most atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-time.After(5 * time.Millisecond)
		now.Add(-1)
	}))
	defer server.Close()
	p := New(Options{URL: server.URL, Version: "0.5.9"})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { p.Probe(context.Background()) })
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d probes at a time", most.Load())
	}
}

func TestProxyIsPassed(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:1")
	t.Setenv("http_proxy", "http://192.0.2.1:1")
	server := httptest.NewServer(sglang{"/health": 200})
	defer server.Close()
	if a := New(Options{URL: server.URL, Version: "0.5.9", Limit: 5 * time.Second}).Probe(context.Background()); a.Serving != Up {
		t.Errorf("got %+v", a)
	}
}

func TestOwnCertificateOnLoopback(t *testing.T) {
	server := httptest.NewTLSServer(sglang{"/health": 200})
	defer server.Close()
	if a := New(Options{URL: server.URL, Version: "0.5.9"}).Probe(context.Background()); a.Serving != Up {
		t.Errorf("got %+v", a)
	}
}

// A certificate that is not ours to judge says nothing of the server's health; that
// of the server we have started is not judged, wherever it binds.
func TestCertificateOfAnotherName(t *testing.T) {
	server := httptest.NewUnstartedServer(sglang{"/health": 200})
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	for own, want := range map[bool]Serving{true: Up, false: Unclear} {
		p := New(Options{URL: "https://glm.invalid", Own: own, Version: "0.5.9"})
		p.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		}
		if a := p.Probe(context.Background()); a.Serving != want {
			t.Errorf("own %v: got %+v, want %s", own, a, want)
		}
	}
}

func TestConfiguredEndpoint(t *testing.T) {
	server := httptest.NewServer(sglang{"/ready": 200, "/not": 503})
	defer server.Close()
	for path, want := range map[string]Serving{"/ready": Up, "/not": Starting, "/absent": Unclear} {
		if a := New(Options{URL: server.URL + path}).Probe(context.Background()); a.Serving != want || a.Endpoint != path {
			t.Errorf("%s: got %+v", path, a)
		}
	}
	for _, bad := range []string{"", "::", "127.0.0.1:30000", "ftp://x/", "http://"} {
		if a := New(Options{URL: bad}).Probe(context.Background()); a.Serving != Unclear || a.Err == "" {
			t.Errorf("%q: got %+v", bad, a)
		}
	}
}

func TestOptionsFor(t *testing.T) {
	for line, want := range map[string]Options{
		"":                              {Own: true, URL: "http://127.0.0.1:30000"},
		"--host 0.0.0.0 --port 8000":    {Own: true, URL: "http://127.0.0.1:8000"},
		"--host :: --api-key k":         {Own: true, URL: "http://[::1]:30000", APIKey: "k"},
		"--host 10.0.0.5":               {Own: true, URL: "http://10.0.0.5:30000"},
		"--host ::1":                    {Own: true, URL: "http://[::1]:30000"},
		"--nnodes 2 --node-rank 1":      {Own: true, URL: "http://127.0.0.1:30000", Follower: true},
		"--disaggregation-mode prefill": {Own: true, URL: "http://127.0.0.1:30000", NoGenerate: "a prefill node takes requests from its router alone"},
		"--disaggregation-mode null":    {Own: true, URL: "http://127.0.0.1:30000"},
		"--speculative-algorithm EAGLE": {Own: true, URL: "http://127.0.0.1:30000", Speculates: true},
		"--is-embedding":                {Own: true, URL: "http://127.0.0.1:30000", NoGenerate: "an embedding or reward model generates nothing"},
		"--ssl-certfile c --port 443":   {Own: true, URL: "https://127.0.0.1:443"},
	} {
		argv := append([]string{"python", "-m", "sglang.launch_server"}, strings.Fields(line)...)
		got, ok := OptionsFor(sglangcmd.Parse(argv, nil, ""))
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%q: %s", line, diff)
		}
	}
	if o, _ := OptionsFor(sglangcmd.Parse([]string{"sglang", "serve", "/m"}, []string{"SGLANG_RUST_SERVER=1"}, "")); !o.Static {
		t.Error("the Rust server's /health is static")
	}
	if o, ok := OptionsFor(sglangcmd.Parse([]string{"sglang", "serve", "/m", "--grpc-mode"}, nil, "")); ok || o.URL != "" {
		t.Errorf("a server that speaks no HTTP is asked at %q", o.URL)
	}
	if o, ok := OptionsFor(sglangcmd.Parse([]string{"sleep", "1"}, nil, "")); ok || o.URL != "" {
		t.Errorf("a command that is no server listens at %q", o.URL)
	}
}
