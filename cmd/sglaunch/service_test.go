package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/serve"
)

// manager is a service manager: it writes down what it is told.
type manager struct {
	conn *net.UnixConn
	mu   sync.Mutex
	told []string
}

func newManager(t *testing.T, path string) *manager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	m := &manager{conn: conn}
	go func() {
		buf := make([]byte, 8192)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.told = append(m.told, string(buf[:n]))
			m.mu.Unlock()
		}
	}()
	return m
}

func (m *manager) all() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.told, "\n")
}

// A launch in service: systemd hears of the start, of ready and of the end, the
// server hears nothing of systemd; hooks run, and a stop settles before the
// server is signalled.
func TestInService(t *testing.T) {
	dir := t.TempDir()
	short, err := os.MkdirTemp("", "sg") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	systemd := newManager(t, filepath.Join(short, "notify"))
	heard := filepath.Join(dir, "heard")
	hook := fmt.Sprintf("[\"/bin/sh\", \"-c\", \"cat >>%s; env | grep -c NOTIFY_ >>%s.env; true\"]", heard, heard)
	s := startStanding(t, dir, "served", fmt.Sprintf("settle = \"2s\"\n[listen]\nsocket = %q\n[hooks]\non_ready = %s\non_stopping = %s\non_gave_up = %s\n",
		filepath.Join(short, "own.sock"), hook, hook, hook), "NOTIFY_SOCKET="+filepath.Join(short, "notify"), "WATCHDOG_USEC=2000000")
	s.await(readyLine)
	s.eventually("on_ready has run", func() bool { return slices.Contains(hooksIn(t, heard), "on_ready") })
	s.eventually("systemd is told", func() bool { return strings.Contains(systemd.all(), "READY=1") })
	start, _, _ := strings.Cut(systemd.all(), "READY=1")
	if !regexp.MustCompile(`STATUS=(loading_weights|graph_capture)`).MatchString(start) || !strings.Contains(start, "EXTEND_TIMEOUT_USEC=") {
		t.Errorf("before ready systemd was told:\n%s", start)
	}
	st := s.status("served")
	env, err := proc.Environ(st.Processes.Server)
	if err != nil || slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "NOTIFY_") || strings.HasPrefix(kv, "WATCHDOG_") }) {
		t.Errorf("the server could speak to systemd: %v", err)
	}

	if code, _, errout := s.sglaunch("stop", "served"); code != exitOK {
		t.Fatalf("stop: %s", errout)
	}
	s.eventually("on_stopping has run", func() bool { return slices.Contains(hooksIn(t, heard), "on_stopping") })
	if code := s.wait(); code != exitOK {
		t.Errorf("the launch ended with %d:\n%s", code, s.stderr.bytes())
	}
	if all := hooksIn(t, heard); !slices.Equal(all, []string{"on_ready", "on_stopping"}) {
		t.Errorf("the hooks were %q", all)
	}
	if data, err := os.ReadFile(heard + ".env"); err != nil || strings.Trim(string(data), "0\n") != "" {
		t.Errorf("a hook could speak to systemd: %q %v", data, err)
	}
	_, end, _ := strings.Cut(systemd.all(), "READY=1")
	if !strings.Contains(end, "STOPPING=1") || !strings.Contains(end, "STATUS=ended with 0") || !strings.Contains(systemd.all(), "WATCHDOG=1") {
		t.Errorf("after ready systemd was told:\n%s", end)
	}
	if took := between(t, filepath.Join(st.Dir, "attempts/1/events.jsonl"), "stopping", "tree_gone"); took < 2*time.Second {
		t.Errorf("from the word of the stop to the end it took %s: it did not settle", took)
	}
	if _, err := os.Stat(filepath.Join(short, "own.sock")); err == nil {
		t.Error("the socket is left behind")
	}
}

// hooksIn lists what hooks have written down.
func hooksIn(t *testing.T, path string) (hooks []string) {
	t.Helper()
	for _, e := range envelopes(t, path) {
		hooks = append(hooks, fmt.Sprint(e.Fields["hook"]))
	}
	return hooks
}

func envelopes(t *testing.T, path string) (all []serve.Envelope) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		var e serve.Envelope
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, e)
	}
	return all
}

// between is the time from the first event of one name to that of another.
func between(t *testing.T, path, from, to string) time.Duration {
	t.Helper()
	at := map[string]time.Time{}
	for _, e := range envelopes(t, path) {
		if _, seen := at[e.Event]; !seen {
			at[e.Event] = e.Time
		}
	}
	if at[from].IsZero() || at[to].IsZero() {
		t.Fatalf("%s lacks %s or %s", path, from, to)
	}
	return at[to].Sub(at[from])
}

// A unit that cannot be printed says why.
func TestUnitCommand(t *testing.T) {
	dir := t.TempDir()
	s := standing{&launched{t: t}, dir}
	if code, _, errout := s.sglaunch("unit"); code != exitUsage || !strings.Contains(errout, "no command is given") {
		t.Errorf("%d %s", code, errout)
	}
	if code, _, errout := s.sglaunch("unit", "-c", filepath.Join(dir, "missing.toml")); code != exitConfig {
		t.Errorf("%d %s", code, errout)
	}
	code, out, errout := s.sglaunch("unit", "--server.name=glm", "--stop.drain=1h", "--relaunch.act=observe", "--", "/usr/bin/python3", "-m", "sglang.launch_server", "--model-path", "/models/glm")
	if code != exitOK {
		t.Fatalf("%d %s", code, errout)
	}
	for _, want := range []string{
		` run --relaunch.act=observe --server.name=glm --stop.drain=1h -- /usr/bin/python3 -m sglang.launch_server --model-path /models/glm` + "\n",
		"TimeoutStartSec=infinity\n", "/models/glm", "RestartSec=300s\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the unit lacks %q:\n%s", want, out)
		}
	}
	if limit := regexp.MustCompile(`TimeoutStopSec=(\d+)s`).FindStringSubmatch(out); limit == nil || len(limit[1]) != 4 || limit[1] < "3900" {
		t.Errorf("TimeoutStopSec is %q for a drain of an hour", limit)
	}
}
