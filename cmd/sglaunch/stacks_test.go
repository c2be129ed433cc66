package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sglaunch/internal/rehearsal"
)

// pySpy plays py-spy in the server's virtual environment: rank 2 stands
// elsewhere than the others.
const pySpy = `#!/bin/sh
while [ $# -gt 1 ]; do case $1 in --pid) PID=$2;; esac; shift; done
NAME=all_reduce FILE=torch/distributed/distributed_c10d.py
case $(tr '\0' ' ' < /proc/$PID/cmdline) in *TP2*) NAME=load_module FILE=flashinfer/jit/core.py;; esac
cat <<END
[{"pid": $PID, "thread_name": "MainThread", "os_thread_id": $PID, "frames": [
  {"name": "Event.wait", "short_filename": "threading.py", "line": 629},
  {"name": "$NAME", "short_filename": "$FILE", "line": 7}]}]
END
`

// A launch that hangs says where its ranks stand and which one is to blame, and
// keeps their stacks.
func TestHangTellsWhere(t *testing.T) {
	t.Parallel()
	lib, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	scenario, err := rehearsal.Find("hang-in-capture")
	if err != nil {
		t.Fatal(err)
	}
	stage, err := rehearsal.Build(filepath.Join(dir, "stage"), rehearsal.Options{Version: scenario.Version, GPUs: 4, Speed: 60, Shards: 20})
	if err != nil {
		t.Fatal(err)
	}
	stage.Lib = lib
	if err := os.WriteFile(filepath.Join(stage.Bin, "py-spy"), []byte(pySpy), 0o755); err != nil {
		t.Fatal(err)
	}
	toml := filepath.Join(dir, "launch.toml")
	config := strings.Replace(story{bare: true}.launchTOML(), `graph_capture = { quiet = "10s" }`, `graph_capture = { quiet = "4s" }`, 1)
	if err := os.WriteFile(toml, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := rehearsal.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"run", "-c", toml, "--"}, stage.Command(stage.Args(4, port)...)...)
	l := startLaunch(t, dir, stage.Env(scenario.Once()), args...)
	l.await(readyLine)
	l.signal(syscall.SIGTERM)
	l.check(story{code: exitOK, tells: []string{
		`3 of 4 ranks in all_reduce \(distributed_c10d.py\); TP2 in load_module \(core.py\); the same 4s later`}}, l.wait())
	kept, err := filepath.Glob(filepath.Join(dir, "state/launches/*/attempts/1/evidence/stacks.txt"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("stacks: %v, %v", kept, err)
	}
	text, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"== TP2, process", "by py-spy", "    load_module (flashinfer/jit/core.py:7)", "== main", "4s later"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the stacks lack %q:\n%s", want, text)
		}
	}
}
