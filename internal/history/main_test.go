package history

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sglaunch/phases"
)

// TestMain also serves as another launch of the same machine: a process of its
// own that records attempts, one after the other, and says so.
func TestMain(m *testing.M) {
	if path := os.Getenv("HISTORY_TEST_WRITER"); path != "" {
		writeAttempts(path, os.Getenv("HISTORY_TEST_LAUNCH"), os.Getenv("HISTORY_TEST_ATTEMPTS"))
		return
	}
	// Local times read the same everywhere. No single test may set it: others
	// leave walks of folders behind, and those read it.
	time.Local = time.UTC
	goleak.VerifyTestMain(m)
}

func writeAttempts(path, launch, attempts string) {
	ctx := context.Background()
	n, err := strconv.Atoi(attempts)
	if err != nil {
		panic(err)
	}
	db, err := Open(ctx, path)
	if err != nil {
		panic(err)
	}
	for i := 1; i <= n; i++ {
		if err := db.RecordAttempt(ctx, launch, fullAttempt(i)); err != nil {
			panic(err)
		}
		fmt.Println(i)
	}
	if err := db.Close(); err != nil {
		panic(err)
	}
}

// writer is such a process.
func writer(t *testing.T, path, launch string, attempts int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	c.Env = append(os.Environ(), "HISTORY_TEST_WRITER="+path, "HISTORY_TEST_LAUNCH="+launch, fmt.Sprint("HISTORY_TEST_ATTEMPTS=", attempts))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c, bufio.NewScanner(out)
}

var day = time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)

var key = Key{
	Machine: "m1", Model: "/models/GLM-5-NVFP4", Flags: "f1", Version: "0.5.10", Patches: "autotune",
	Caches: Caches{Pages: Warm, JIT: Warm},
}

// fullAttempt has a value in every field that RecordAttempt writes.
func fullAttempt(n int) Attempt {
	at := day.Add(time.Duration(n) * time.Hour)
	return Attempt{
		N: n, Key: key, Began: at, Ready: at.Add(12 * time.Minute), Ended: at.Add(14 * time.Minute),
		Outcome: "crashed", Cause: "oom_runtime", Fingerprint: "oom_runtime|serving", Phase: "serving", Rank: "TP3",
		Text:    "torch.OutOfMemoryError: CUDA out of memory",
		Patches: []Patch{{"autotune", "pristine", "effective", "passed"}},
		Changes: []Change{{"graph-capture-oom", "--cuda-graph-max-bs 64"}},
	}
}

func fullLaunch(id string) Launch {
	code := 10
	asked := key
	asked.Caches = Caches{}
	return Launch{
		ID: id, Name: "glm", Host: "box1", Command: []string{"python", "-m", "sglang.launch_server"}, Key: asked,
		Began: day, Ended: day.Add(time.Hour), Code: &code, Reason: "gave up: the same cause 3 times",
	}
}

func fullSpan() Span {
	return Span{
		Rank: "TP0", Phase: phases.LoadingWeights, Began: day, Took: 382 * time.Second, Complete: true,
		Quiet: 9 * time.Second, Done: 83, Total: 83, Unit: "shards",
	}
}

func openTest(t *testing.T, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func testPath(t *testing.T) string { return filepath.Join(t.TempDir(), "history.db") }
