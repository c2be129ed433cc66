package rehearsal

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// patience bounds every wait in these tests. It is long because the machine may
// be slow, and costs nothing where it is not.
const patience = 60 * time.Second

// stages holds one installation a version, built when first needed.
var stages struct {
	sync.Mutex
	dir  string
	made map[string]*Stage
}

func TestMain(m *testing.M) {
	if os.Getenv(nvmlReader) != "" {
		readNVML()
		return
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	// Orphans of the stand-in become children of this process: none escapes.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "cannot become subreaper:", err)
		return 1
	}
	// The servers sleep most of the time: more of them than CPUs may run.
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "rehearsal")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	stages.dir, stages.made = dir, map[string]*Stage{}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// stageFor forks the test's own stage off the one installation of a version.
func stageFor(t *testing.T, version string, speed float64) *Stage {
	t.Helper()
	if version == "" {
		version = DefaultVersion
	}
	stages.Lock()
	defer stages.Unlock()
	s := stages.made[version]
	if s == nil {
		var err error
		s, err = Build(filepath.Join(stages.dir, version), Options{Version: version, NVML: true})
		if err != nil {
			t.Fatal(err)
		}
		stages.made[version] = s
	}
	fork, err := s.Fork(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fork.Speed = speed
	return fork
}

// server is a running stand-in and what it has printed so far.
type server struct {
	t     *testing.T
	port  int
	cmd   *exec.Cmd
	group int // its process group, and the pid of main
	ended chan struct{}

	mu     sync.Mutex
	out    bytes.Buffer
	change chan struct{} // closed and replaced at every change
}

// play starts the stage's server on a free port and ends all of it with the test.
func play(t *testing.T, s *Stage, args []string, scenarios ...Scenario) *server {
	t.Helper()
	port := freePort(t)
	command := s.Command(append(args, "--port", strconv.Itoa(port))...)
	return start(t, port, command, s.Env(scenarios...))
}

func start(t *testing.T, port int, command, env []string) *server {
	t.Helper()
	p := &server{t: t, port: port, ended: make(chan struct{}), change: make(chan struct{})}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = time.Second // strays may keep the pipe open
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.group = p.cmd.Process.Pid
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(p.clear)
	return p
}

// Write takes output. It is called by one goroutine of os/exec.
func (p *server) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Write(b)
	close(p.change)
	p.change = make(chan struct{})
	return len(b), nil
}

func (p *server) output() (string, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String(), p.change
}

// sees waits until the output holds the text.
func (p *server) sees(text string) {
	p.t.Helper()
	limit := time.After(patience)
	for {
		out, change := p.output()
		if strings.Contains(out, text) {
			return
		}
		select {
		case <-change:
		case <-p.ended:
			if out, _ := p.output(); strings.Contains(out, text) {
				return
			}
			p.t.Fatalf("ended (%v) without %q; output:\n%s", p.cmd.ProcessState, text, out)
		case <-limit:
			p.t.Fatalf("no %q within %v; output:\n%s", text, patience, out)
		}
	}
}

// fallsSilent waits until main is alive and nothing has been printed for d.
func (p *server) fallsSilent(d time.Duration) {
	p.t.Helper()
	limit := time.After(patience)
	for {
		out, change := p.output()
		select {
		case <-change:
		case <-p.ended:
			p.t.Fatalf("expected it to hang, it ended: %v; output:\n%s", p.cmd.ProcessState, out)
		case <-limit:
			p.t.Fatalf("expected silence; output:\n%s", out)
		case <-time.After(d):
			return
		}
	}
}

// ends waits for main and returns how it ended: "exit status 1", "signal: killed".
func (p *server) ends() string {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.String()
	case <-time.After(patience):
		out, _ := p.output()
		p.t.Fatalf("main did not end within %v; output:\n%s", patience, out)
		return ""
	}
}

func (p *server) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// get returns the status of one endpoint; 0 if the connection was refused.
func (p *server) get(path string) int {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", p.port, path), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return 0
	}
	if err != nil {
		p.t.Fatalf("GET %s: %v", path, err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// post returns the body of the answer to a JSON request, which must succeed.
func (p *server) post(path, body string) string {
	p.t.Helper()
	answer, err := p.tryPost(path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// tryPost may fail: the server may be about to die.
func (p *server) tryPost(path, body string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d%s", p.port, path), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("POST %s: %w", path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("POST %s: %s, %v: %s", path, resp.Status, err, answer)
	}
	return string(answer), nil
}

// until polls a condition about other processes, of which no event tells.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// clear ends everything that the server has left, strays in other sessions too.
func (p *server) clear() {
	_ = syscall.Kill(-p.group, syscall.SIGKILL)
	<-p.ended
	for _, q := range processes(p.t) {
		if q.env("SGLAUNCH_REHEARSAL_STATE") == p.stateDir() && q.env(nvmlReader) == "" {
			_ = syscall.Kill(q.pid, syscall.SIGKILL)
		}
	}
	until(p.t, "no process of the group is left", func() bool { return !groupAlive(p.group) })
}

func (p *server) stateDir() string {
	for _, v := range p.cmd.Env {
		if dir, ok := strings.CutPrefix(v, "SGLAUNCH_REHEARSAL_STATE="); ok {
			return dir
		}
	}
	return "none"
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// launchArgs are Args without a port, which play chooses.
func launchArgs(s *Stage, tp int) []string {
	args := s.Args(tp, 0)
	for i, a := range args {
		if a == "--port" {
			return append(args[:i:i], args[i+2:]...)
		}
	}
	return args
}
