package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sglaunch/internal/rehearsal"
	"sglaunch/internal/serve"
	"sglaunch/supervisor"
)

// standing is a launch on the stand-in that tests ask and tell.
type standing struct {
	*launched
	dir string
}

// startStanding starts one of that name, with more of launch.toml in dir and
// more environment.
func startStanding(t *testing.T, dir, name, config string, env ...string) standing {
	t.Helper()
	lib, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	scenario, err := rehearsal.Find("healthy")
	if err != nil {
		t.Fatal(err)
	}
	stage, err := rehearsal.Build(filepath.Join(dir, "stage"), rehearsal.Options{GPUs: 2, Speed: 25, Shards: 20})
	if err != nil {
		t.Fatal(err)
	}
	stage.Lib = lib
	port, err := rehearsal.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	toml := filepath.Join(dir, "launch.toml")
	config = fmt.Sprintf("[server]\nname = %q\n[stop]\ndrain = \"20s\"\ngrace = \"5s\"\n%s", name, config)
	if err := os.WriteFile(toml, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"run", "-c", toml, "--"}, stage.Command(stage.Args(2, port)...)...)
	return standing{startLaunch(t, dir, append(stage.Env(scenario), env...), args...), dir}
}

// sglaunch runs another command beside the launch.
func (s standing) sglaunch(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	return s.as(self, args...)
}

// as is sglaunch by another program.
func (s standing) as(program string, args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	var out, errout bytes.Buffer
	cmd := exec.CommandContext(s.t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "SGLAUNCH_STATE="+filepath.Join(s.dir, "state"))
	cmd.Stdout, cmd.Stderr = &out, &errout
	_ = cmd.Run() // the exit code says it
	return cmd.ProcessState.ExitCode(), out.String(), errout.String()
}

// status asks as a script does, and holds the answer against the schema.
func (s standing) status(args ...string) serve.Status {
	s.t.Helper()
	code, out, errout := s.sglaunch(append([]string{"status", "--json"}, args...)...)
	if code != exitOK {
		s.t.Fatalf("status ended with %d: %s", code, errout)
	}
	s.fits("status.json", []byte(out))
	var st serve.Status
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		s.t.Fatal(err)
	}
	return st
}

func (s standing) fits(schema string, doc []byte) {
	s.t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	compiled, err := c.Compile("../../docs/schema/" + schema)
	if err != nil {
		s.t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		s.t.Fatalf("%v in %s", err, doc)
	}
	if err := compiled.Validate(instance); err != nil {
		s.t.Errorf("%v: %s", err, doc)
	}
}

// answers asks the launch over HTTP.
func (s standing) answers(address, path string, status int, pattern string) {
	s.t.Helper()
	answer, err := http.Get("http://" + address + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status || !regexp.MustCompile(pattern).Match(body) {
		s.t.Errorf("%s answers %d %v, want %d and %q:\n%s", path, answer.StatusCode, err, status, pattern, body)
	}
}

// eventually polls a real condition.
func (s standing) eventually(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(storyLimit); !ok(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("it never happened that %s; standard error:\n%s", what, s.stderr.bytes())
		}
		time.Sleep(20 * time.Millisecond) // the pause of a poll
	}
}

// A launch is asked how far it is, followed, started anew and stopped, all by
// name, while its server runs.
func TestAskedAndTold(t *testing.T) {
	s := startStanding(t, t.TempDir(), "glm", "[listen]\nhttp = \"127.0.0.1:0\"\n")
	s.await(`server is process`)
	address := s.status().HTTP
	s.answers(address, serve.PathHealth, 200, `^[a-z_]+`)
	s.answers(address, serve.PathReady, 503, "")
	watched := &lockedBuffer{}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	watch := exec.Command(self, "status", "--watch", "--json")
	watch.Env = append(os.Environ(), "SGLAUNCH_STATE="+filepath.Join(s.dir, "state"))
	watch.Stdout = watched
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	s.await(readyLine)
	s.answers(address, serve.PathReady, 200, "ready|serving")
	s.answers(address, serve.PathMetrics, 200, `sglaunch_announced 1`)
	s.answers(address, serve.PathMetrics, 200, `sglaunch_output_bytes_total [1-9]`)
	s.answers(address, serve.PathMetrics, 200, `sglaunch_phase_seconds\{phase="loading_weights"\} \d`)
	st := s.status("glm")
	if !st.Ready || st.State != "up" || st.Attempt != 1 || st.Processes.Server == 0 || st.Processes.Shim != s.cmd.Process.Pid || len(st.Ranks) == 0 {
		t.Errorf("ready, the status is %+v", st)
	}
	if code, out, _ := s.sglaunch("status"); code != exitOK || !strings.HasPrefix(out, "glm: ready") && !strings.HasPrefix(out, "glm: serving") {
		t.Errorf("status says %d %q", code, out)
	}

	if err := syscall.Kill(st.Processes.Supervisor, syscall.SIGKILL); err != nil { // whoever follows goes on with the next
		t.Fatal(err)
	}
	s.await("supervisor is back")
	if code, out, errout := s.sglaunch("restart"); code != exitOK || !strings.Contains(out, "glm is being restarted") {
		t.Fatalf("restart: %d %s %s", code, out, errout)
	}
	s.await(`(?s)ready after.*restart as asked: sglaunch restart.*ready after`)
	if again := s.status(); again.Attempt != 2 || again.Processes.Server == st.Processes.Server || again.Failed != nil {
		t.Errorf("after the restart the status is %+v", again)
	}

	if code, out, errout := s.sglaunch("stop", "--wait"); code != exitOK || !strings.Contains(out, "glm: ended with 0: stopped as asked: sglaunch stop") {
		t.Fatalf("stop: %d %s %s", code, out, errout)
	}
	if code := s.wait(); code != exitOK {
		t.Errorf("the launch ended with %d", code)
	}
	if err := watch.Wait(); err != nil {
		t.Errorf("the one who follows: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(watched.bytes())), "\n")
	supervisors := 0
	for _, line := range lines {
		if strings.Contains(line, `"event":"status"`) {
			supervisors++
			s.fits("status.json", []byte(line))
		} else {
			s.fits("envelope.json", []byte(line))
		}
	}
	if supervisors != 2 {
		t.Errorf("who follows was told by %d supervisors", supervisors)
	}
	if all := string(watched.bytes()); !strings.Contains(all, `"event":"server_ready"`) || !strings.Contains(lines[len(lines)-1], `"event":"launch_ended"`) {
		t.Errorf("who follows was told:\n%s", all)
	}
	if ended := s.status("glm"); ended.Exit == nil || ended.Exit.Code != 0 || ended.Exit.Reason != "stopped as asked: sglaunch stop" {
		t.Errorf("in the end the status is %+v", ended)
	}
	if code, _, errout := s.sglaunch("stop", "glm"); code != 1 || !strings.Contains(errout, `no launch "glm" is running`) {
		t.Errorf("stopping nothing: %d %s", code, errout)
	}
	if code, _, errout := s.sglaunch("status"); code != 1 || !strings.Contains(errout, "no launch is running") {
		t.Errorf("status of nothing: %d %s", code, errout)
	}
	if code, _, errout := s.sglaunch("status", "other"); code != 1 || !strings.Contains(errout, `cannot find "other"`) {
		t.Errorf("status of an unknown launch: %d %s", code, errout)
	}
}

// A supervisor that does not answer is told apart from one that is dead, and a
// launch without either is stopped all the same.
func TestWhichOfTheThreeLives(t *testing.T) {
	s := startStanding(t, t.TempDir(), "glm", "")
	s.await(readyLine)
	before := s.status()
	if err := syscall.Kill(before.Processes.Supervisor, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	st := s.status()
	if st.State != serve.StateSilent || st.Processes.Supervisor != before.Processes.Supervisor || st.Processes.Server != before.Processes.Server {
		t.Errorf("with a supervisor that hangs the status is %+v", st)
	}
	_ = syscall.Kill(before.Processes.Supervisor, syscall.SIGKILL)
	s.eventually("a new supervisor answers", func() bool {
		now := s.status()
		return now.State == "up" && now.Ready && now.Processes.Supervisor != before.Processes.Supervisor
	})
	s.eventually("the shim gives supervisors up", func() bool {
		if now := s.status().Processes.Supervisor; now != 0 {
			_ = syscall.Kill(now, syscall.SIGKILL)
		}
		return bytes.Contains(s.stderr.bytes(), []byte("nobody watches it"))
	})
	if st := s.status(); st.State != serve.StateBlind || st.Processes.Supervisor != 0 || st.Processes.Server != before.Processes.Server {
		t.Errorf("without a supervisor the status is %+v", st)
	}
	if code, out, _ := s.sglaunch("stop"); code != exitOK || !strings.Contains(out, "does not answer; SIGTERM was sent") {
		t.Errorf("stop says %d %q", code, out)
	}
	if code := s.wait(); code != exitOK {
		t.Errorf("the launch ended with %d:\n%s", code, s.stderr.bytes())
	}
}

// What somebody put in the place of the control socket is told as what it is, while
// the supervisor lives and would answer.
func TestSocketTaken(t *testing.T) {
	s := startStanding(t, t.TempDir(), "glm", "")
	s.await(readyLine)
	socket := supervisor.Find(mustState(t, s.dir), "glm").Socket
	if err := os.WriteFile(socket+".theirs", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(socket+".theirs", socket); err != nil {
		t.Fatal(err)
	}
	st := s.status()
	if want := fmt.Sprintf("the supervisor lives; its control socket %q is no socket", socket); st.State != serve.StateSilent || st.Text != want {
		t.Errorf("the status is %s, %q; want %q", st.State, st.Text, want)
	}
	if code, out, _ := s.sglaunch("stop"); code != exitOK || !strings.Contains(out, "SIGTERM was sent") {
		t.Errorf("stop says %d %q", code, out)
	}
	if code := s.wait(); code != exitOK {
		t.Errorf("the launch ended with %d:\n%s", code, s.stderr.bytes())
	}
}

// A launch that was killed with everything of its own is dead until somebody
// recovers it.
func TestDeadLaunch(t *testing.T) {
	dir := t.TempDir()
	s := standing{startLaunch(t, dir, nil, "run", "--server.name=glm", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1000; done"), dir}
	s.await(`server is process`)
	st := s.status("glm")
	for _, pid := range []int{st.Processes.Supervisor, st.Processes.Shim} {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range []int{st.Processes.Supervisor, st.Processes.Shim} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	s.wait()
	s.eventually("it is dead", func() bool { return s.status("glm").State == serve.StateDead })
	if code, out, _ := s.sglaunch("status", "glm"); code != exitOK || !strings.Contains(out, "glm: dead") || !strings.Contains(out, "sglaunch was killed") {
		t.Errorf("status says %d %q", code, out)
	}
	if code, out, errout := s.sglaunch("recover"); code != exitOK {
		t.Errorf("recover: %d %s %s", code, out, errout)
	}
	if st := s.status("glm"); st.Exit == nil || st.Exit.Code != exitLater {
		t.Errorf("after the recovery the status is %+v", st)
	}
}
