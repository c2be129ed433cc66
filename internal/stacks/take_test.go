package stacks

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sglaunch/internal/eventually"
	"sglaunch/internal/proc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// python starts an interpreter that waits, and returns it once it does: until then
// the kernel shows no place.
func python(t *testing.T, rank string) Process {
	t.Helper()
	cmd := exec.Command("python3", "-c", "import time; print(flush=True); time.sleep(1000)")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	p, err := proc.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the place of a process that sleeps, by the kernel", func() bool {
		_, err := kernel(proc.Pictures(t.Context(), []proc.ID{p.ID})[0])
		return err == nil
	})
	return Process{p.ID, rank}
}

// tool writes a program that plays py-spy or gdb; $PID is the process.
func tool(t *testing.T, name, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	script = "#!/bin/sh\nwhile [ $# -gt 1 ]; do case $1 in --pid|-p) PID=$2;; esac; shift; done\n" + script
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const pySpyScript = `cat <<END
[{"pid": $PID, "thread_name": "MainThread", "os_thread_id": $PID, "frames": [{"name": "forward", "short_filename": "model.py", "line": 7}]}]
END
`

// Each process is seen by the first tool that gets on, and what the others said
// is kept.
func TestTake(t *testing.T) {
	good, bad := tool(t, "py-spy", pySpyScript), tool(t, "py-spy", "echo 'Error: ptrace failed' >&2; echo '   0: main' >&2; exit 1\n")
	gdb := tool(t, "gdb", "echo '#0  cuModuleLoadData () from /usr/lib/libcuda.so.1'\n")
	p, q := python(t, "TP0"), python(t, "TP1")
	gone := Process{proc.ID{PID: p.PID, Start: 1}, "TP2"}
	for name, c := range map[string]struct {
		tools Tools
		used  string
		place string
		errs  string
	}{
		"py-spy":         {Tools{PySpy: good, GDB: gdb}, "py-spy", "forward (model.py)", ""},
		"gdb after it":   {Tools{PySpy: bad, GDB: gdb}, "gdb", "cuModuleLoadData (libcuda.so.1)", "py-spy: Error: ptrace failed"},
		"gdb":            {Tools{GDB: gdb}, "gdb", "cuModuleLoadData (libcuda.so.1)", ""},
		"what is there":  {Tools{}, "kernel", "", ""},
		"one that fails": {Tools{PySpy: "/nonexistent/py-spy"}, "kernel", "", "cannot run py-spy"},
	} {
		t.Run(name, func(t *testing.T) {
			c.tools.Limit = 20 * time.Second
			all := Take(context.Background(), c.tools, []Process{p, gone, q})
			if len(all) != 2 || all[0].Rank != "TP0" || all[1].Rank != "TP1" {
				t.Fatalf("looked at %+v", all)
			}
			for _, s := range all {
				if s.Tool != c.used || c.place != "" && place(s.main()) != c.place || !strings.Contains(strings.Join(s.Errs, "\n"), c.errs) {
					t.Errorf("got\n%s", s)
				}
			}
		})
	}
}

// A tool that hangs costs its limit and nothing more, and leaves nobody behind.
func TestTakeHangs(t *testing.T) {
	mark := fmt.Sprintf("hangs-%d", os.Getpid())
	hangs := tool(t, "py-spy", "(MARK="+mark+" exec sleep 1000) & MARK="+mark+" exec sleep 1000\n")
	began := time.Now()
	all := Take(context.Background(), Tools{PySpy: hangs, Limit: 300 * time.Millisecond}, []Process{python(t, "TP0"), python(t, "TP1")})
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, s := range all {
		if s.Tool != "kernel" || len(s.Errs) != 1 || !strings.Contains(s.Errs[0], "did not answer in time") {
			t.Errorf("got\n%s", s)
		}
	}
	eventually.True(t, "the end of everything that it started", func() bool {
		left, err := proc.WithMarker("MARK=" + mark)
		if err != nil {
			t.Fatal(err)
		}
		return len(left) == 0
	})
}

func TestFind(t *testing.T) {
	path := tool(t, "py-spy", "")
	dir := filepath.Dir(path)
	if got := Find("py-spy", "relative", "/nonexistent", dir); got != path {
		t.Errorf("got %q, want %q", got, path)
	}
	t.Setenv("PATH", "/nonexistent")
	if got := Find("py-spy"); got != "" {
		t.Errorf("found %q nowhere", got)
	}
	t.Setenv("PATH", dir)
	if got := Find("py-spy"); got != path {
		t.Errorf("got %q, want %q", got, path)
	}
}
