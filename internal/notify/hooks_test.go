package notify

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sglaunch/internal/eventually"
	"sglaunch/internal/serve"
)

// troubles collects what a runner could not tell.
type troubles struct {
	mu  sync.Mutex
	all []string
}

func (t *troubles) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, err.Error())
}

func (t *troubles) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.all, "\n")
}

func event(name string, pairs ...any) serve.Envelope {
	e := serve.Envelope{V: 1, Time: dawn, Launch: "glm", Attempt: 1, Event: name, Text: "the server's own words", Fields: map[string]any{}}
	for i := 0; i < len(pairs); i += 2 {
		e.Fields[pairs[i].(string)] = pairs[i+1]
	}
	return e
}

// into is a hook that adds what it reads to a file.
func into(path string) []string { return []string{"/bin/sh", "-c", `cat >>"$0"`, path} }

// lines reads the hooks that a file has heard of, in order.
func lines(t *testing.T, path string) (hooks []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var e serve.Envelope
		if line == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if e.Text != "" || strings.Contains(line, "words") {
			t.Errorf("a line of the server leaves the house: %s", line)
		}
		hooks = append(hooks, fmt.Sprint(e.Fields["hook"]))
	}
	return hooks
}

// The story of a bad night: every hook hears of its own part, the webhook of all.
func TestStory(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	var mu sync.Mutex
	var posted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e serve.Envelope
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		posted = append(posted, fmt.Sprint(e.Fields["hook"]))
	}))
	defer server.Close()
	var wrong troubles
	r := NewRunner(Hooks{
		OnReady: into(path("ready")), OnStopping: into(path("stopping")), OnFailure: into(path("failure")), OnRecovered: into(path("recovered")),
		OnGaveUp: into(path("gave_up")), OnStuck: into(path("stuck")), Webhook: server.URL, Limit: 20 * time.Second,
	}, Before{}, wrong.add)
	for _, e := range []serve.Envelope{
		event("launch_started"), event("attempt_started"), event("verdict", "outcome", "hung", "cause", "load_hang"),
		event("attempt_ended", "outcome", "hung", "cause", "load_hang", "text", "server words"),
		event("attempt_started"), event("announced"), event("stopping", "by", "sglaunch restart"),
		event("attempt_ended", "outcome", "stopped"), event("attempt_started"), event("announced"),
		event("attempt_ended", "outcome", "crashed"), event("stopping", "by", "late"), event("gave_up", "code", 10),
	} {
		r.Told(e)
	}
	r.Close()
	r.Told(event("gave_up")) // nobody hears it, nothing breaks
	for name, want := range map[string]string{
		"ready": "on_ready on_ready", "stopping": "on_stopping", "failure": "on_failure on_failure",
		"recovered": "on_recovered", "gave_up": "on_gave_up", "stuck": "on_stuck",
	} {
		if got := strings.Join(lines(t, path(name)), " "); got != want {
			t.Errorf("%s heard %q, want %q", name, got, want)
		}
	}
	want := "on_stuck on_failure on_ready on_recovered on_stopping on_ready on_failure on_gave_up"
	if got := strings.Join(posted, " "); got != want {
		t.Errorf("posted %q, want %q", got, want)
	}
	if wrong.text() != "" {
		t.Error(wrong.text())
	}
}

// A failure that a supervisor before has told of is recovered from all the same.
func TestRecoveredAfterAnotherSupervisor(t *testing.T) {
	recovered := filepath.Join(t.TempDir(), "recovered")
	var wrong troubles
	r := NewRunner(Hooks{OnRecovered: into(recovered), Limit: 20 * time.Second}, Before{Failed: true}, wrong.add)
	r.Told(event("announced"))
	r.Told(event("announced"))
	r.Close()
	if got := strings.Join(lines(t, recovered), " "); got != "on_recovered" || wrong.text() != "" {
		t.Errorf("heard %q; trouble: %s", got, wrong.text())
	}
}

// A hook that fails is tried again; one that never works is told once.
func TestTriedAgain(t *testing.T) {
	dir := t.TempDir()
	var wrong troubles
	third := `echo x >>"$0"; [ $(wc -l <"$0") -eq 3 ]`
	r := NewRunner(Hooks{
		OnReady:  []string{"/bin/sh", "-c", third, filepath.Join(dir, "n")},
		OnGaveUp: []string{filepath.Join(dir, "missing")},
		OnStuck:  []string{"/bin/sh", "-c", "echo token=abc >&2; exit 3"}, Limit: 20 * time.Second,
	}, Before{}, wrong.add)
	r.Told(event("announced"))
	r.Told(event("gave_up"))
	r.Told(event("verdict", "outcome", "hung"))
	r.Close()
	if data, _ := os.ReadFile(filepath.Join(dir, "n")); len(data) != 6 {
		t.Errorf("it was tried %d times, want 3", len(data)/2)
	}
	text := wrong.text()
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, "no such file") || !strings.Contains(text, "exit status 3") {
		t.Errorf("trouble: %s", text)
	}
}

// A hook that leaves something behind, which holds its output, has worked: it is run
// once, and what it has left lives.
func TestHookThatLeavesSomethingBehind(t *testing.T) {
	dir := t.TempDir()
	ran, pidFile := filepath.Join(dir, "ran"), filepath.Join(dir, "pid")
	var wrong troubles
	r := NewRunner(Hooks{
		OnReady: []string{"/bin/sh", "-c", `echo x >>"$0"; sleep 1000 & echo $! >"$1"`, ran, pidFile}, Limit: 20 * time.Second,
	}, Before{}, wrong.add)
	r.Told(event("announced"))
	r.Close()
	pid := pidIn(t, pidFile)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("what it has left: %v", err)
	}
	if data, _ := os.ReadFile(ran); len(data) != 2 || wrong.text() != "" {
		t.Errorf("it ran %d times; trouble: %s", len(data)/2, wrong.text())
	}
}

// A hook that hangs is ended with all it has started, and holds up no other.
func TestLimit(t *testing.T) {
	const limit = time.Second
	dir := t.TempDir()
	pidFile, ready := filepath.Join(dir, "pid"), filepath.Join(dir, "ready")
	var wrong troubles
	r := NewRunner(Hooks{
		OnStopping: []string{"/bin/sh", "-c", `sleep 1000 & echo $! >"$0"; wait`, pidFile},
		OnReady:    into(ready), Limit: limit,
	}, Before{Announced: true}, wrong.add)
	begun := time.Now()
	r.Told(event("stopping", "by", "x"))
	r.Told(event("announced"))
	if took := time.Since(begun); took >= limit {
		t.Errorf("telling took %s", took)
	}
	eventually.True(t, "a hook beside one that hangs", func() bool { return len(lines(t, ready)) > 0 })
	r.Close()
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("closing took %s", took)
	}
	pid := pidIn(t, pidFile)
	eventually.True(t, "the end of what a hook has started", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
}

// pidIn is the process that a hook has noted in a file.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// zombie: dead, and not collected by whoever is its parent now.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// A webhook's answer decides, and its token is never told.
func TestWebhookFails(t *testing.T) {
	var mu sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n < 3 {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "no")
		}
	}))
	defer server.Close()
	var wrong troubles
	r := NewRunner(Hooks{Webhook: server.URL, Limit: 20 * time.Second}, Before{}, wrong.add)
	r.Told(event("gave_up"))
	r.Close()
	if n != 3 || wrong.text() != "" {
		t.Errorf("%d tries, %s", n, wrong.text())
	}
	r = NewRunner(Hooks{Webhook: "http://user:hunter2@127.0.0.1:1/x?token=hunter2", Limit: time.Second}, Before{}, wrong.add)
	r.Told(event("gave_up"))
	r.Close()
	if text := wrong.text(); !strings.Contains(text, "refused") || strings.Contains(text, "hunter2") {
		t.Errorf("trouble: %s", text)
	}
}

// A webhook that sends us elsewhere has not heard: what follows a redirect asks
// without the document, and tells the next host where it came from.
func TestWebhookThatHasMoved(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusMovedPermanently))
	defer server.Close()
	var wrong troubles
	r := NewRunner(Hooks{Webhook: server.URL + "/hunter2", Limit: 20 * time.Second}, Before{}, wrong.add)
	r.Told(event("gave_up"))
	r.Close()
	if text := wrong.text(); elsewhere.Load() != 0 || !strings.Contains(text, "301") || strings.Contains(text, "hunter2") {
		t.Errorf("asked elsewhere %d times; trouble: %s", elsewhere.Load(), text)
	}
}

// A hook that the end of the launch cuts short is told as that, not as a signal from
// nowhere.
func TestHookEndedWithTheLaunch(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	var wrong troubles
	r := NewRunner(Hooks{OnGaveUp: []string{"/bin/sh", "-c", `echo {} >"$0"; exec sleep 1000`, begun}, Limit: time.Minute}, Before{}, wrong.add)
	r.Told(event("gave_up"))
	eventually.True(t, "the hook to begin", func() bool { return len(lines(t, begun)) > 0 })
	r.stop()
	r.Close()
	if text := wrong.text(); !strings.Contains(text, "the launch was over") || strings.Contains(text, "signal") {
		t.Errorf("trouble: %s", text)
	}
}

// A hook that is asked for more than it takes loses news and holds nobody up.
func TestFlood(t *testing.T) {
	var wrong troubles
	r := NewRunner(Hooks{OnGaveUp: []string{"/bin/sleep", "1000"}, Limit: 100 * time.Millisecond}, Before{}, wrong.add)
	for range 10 * laneDepth {
		r.Told(event("gave_up"))
	}
	r.Close()
	if !strings.Contains(wrong.text(), "earlier events wait") {
		t.Errorf("trouble: %s", wrong.text())
	}
}

func TestEnvironmentSpeaksToNoServiceManager(t *testing.T) {
	got := WithoutService([]string{"A=1", "NOTIFY_SOCKET=/x", "WATCHDOG_USEC=1", "LISTEN_FDS=1", "NOTIFY_SOCKETS=2"})
	if strings.Join(got, " ") != "A=1 NOTIFY_SOCKETS=2" {
		t.Errorf("%q", got)
	}
}
