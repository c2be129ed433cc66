package serve

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// listening serves a launch that a test may change.
func listening(t *testing.T, st *Status) *HTTP {
	t.Helper()
	var mu sync.Mutex
	h, err := ListenHTTP(HTTPOptions{Address: "127.0.0.1:0", Metrics: http.NotFoundHandler(), Status: func() Status {
		mu.Lock()
		defer mu.Unlock()
		return *st
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func get(t *testing.T, h *HTTP, method, path, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+h.Address()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host, r.Close = host, true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// /healthz is of sglaunch, /readyz of the server; a launch that ends is not
// ready any more.
func TestHealthAndReadiness(t *testing.T) {
	serving := Status{Launch: "glm", State: "up", Phase: "serving", Ready: true, Announced: true}
	for name, c := range map[string]struct {
		status       func(*Status)
		alive, ready bool
	}{
		"serves":                    {func(s *Status) {}, true, true},
		"starting":                  {func(s *Status) { s.State, s.Ready, s.Announced = "starting", false, false }, true, false},
		"answers are checked":       {func(s *Status) { s.State, s.Announced = "checking", false }, true, false},
		"between two attempts":      {func(s *Status) { s.State, s.Ready, s.Announced = "backoff", false, false }, true, false},
		"failed, not announced off": {func(s *Status) { s.State, s.Ready = "evidence", false }, true, false},
		"stop was asked":            {func(s *Status) { s.Stop = &Stop{"SIGTERM"} }, true, false},
		"gave up":                   {func(s *Status) { s.State, s.Ready, s.Exit = "ended", false, &Exit{Code: 10, Reason: "why"} }, false, false},
	} {
		st := serving
		c.status(&st)
		h := listening(t, &st)
		for path, want := range map[string]bool{PathHealth: c.alive, PathReady: c.ready} {
			status := map[bool]int{true: 200, false: 503}[want]
			if got, text := get(t, h, "GET", path, "localhost"); got != status || strings.TrimSpace(text) != st.Line() {
				t.Errorf("%s: %s answers %d %q, want %d", name, path, got, text, status)
			}
		}
		_ = h.Close()
	}
}

func TestStatusOverHTTP(t *testing.T) {
	st := full()
	h := listening(t, &st)
	code, body := get(t, h, "GET", PathStatus, "127.0.0.1:1")
	var got Status
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 || got.Launch != "glm" || got.HTTP == "" {
		t.Errorf("%d %v %s", code, err, body)
	}
	for path, want := range map[string]int{"/": 200, "/debug/pprof/": 404, "/status/x": 404, "/../etc/passwd": 404} {
		if code, _ := get(t, h, "GET", path, "localhost"); code != want {
			t.Errorf("%s answers %d, want %d", path, code, want)
		}
	}
	for _, path := range []string{PathHealth, PathReady, PathStatus} {
		if code, _ := get(t, h, "POST", path, "localhost"); code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s answers %d", path, code)
		}
	}
}

// A page in a browser that has its own name point to this machine gets nothing.
func TestOtherNamesOfLoopback(t *testing.T) {
	st := full()
	h := listening(t, &st)
	for host, want := range map[string]int{
		"evil.example": 421, "evil.example:9180": 421, "localhost:9180": 200, "127.0.0.1": 200, "[::1]:9180": 200, "10.0.0.5": 200,
	} {
		if code, _ := get(t, h, "GET", PathStatus, host); code != want {
			t.Errorf("asked as %q: %d, want %d", host, code, want)
		}
	}
}

func TestExposed(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": false, "localhost:1": false, "[::1]:1": false, "127.9.9.9:1": false,
		"0.0.0.0:1": true, "10.0.0.5:1": true, "[::]:1": true, "box.example:1": true, "nonsense": true,
	} {
		if got := Exposed(address); got != want {
			t.Errorf("%s is exposed: %v", address, got)
		}
	}
}

func TestHTTPAddressInUse(t *testing.T) {
	st := full()
	h := listening(t, &st)
	_, err := ListenHTTP(HTTPOptions{Address: h.Address(), Metrics: http.NotFoundHandler()})
	if want := fmt.Sprintf("cannot serve HTTP on %q: ", h.Address()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// Clients that send nothing hold neither the others nor the end up, however many, and
// a long header is refused.
func TestIdleHTTPClients(t *testing.T) {
	st := full()
	h := listening(t, &st)
	for range 10 * httpClients {
		c, err := net.Dial("tcp", h.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	asked := time.Now()
	if code, _ := get(t, h, "GET", PathHealth, "localhost"); code != 503 { // full() has ended
		t.Errorf("beside idle clients: %d", code)
	}
	if took := time.Since(asked); took > 4*headerLimit { // in turn, it would be ten times that
		t.Errorf("beside idle clients it took %s", took)
	}
	c, err := net.Dial("tcp", h.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("a", 64<<10))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long header: %v %v", answer, err)
	}
	begun := time.Now()
	_ = h.Close()
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("closing took %s", took)
	}
}
