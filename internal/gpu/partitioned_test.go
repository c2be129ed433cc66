//go:build cgo

package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// compiled builds a stand-in library from testdata.
func compiled(t *testing.T, source string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	out, err := exec.Command("cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", path, source).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func TestPartitionedGPU(t *testing.T) {
	s := prepare(t, 0)
	s.Client = Start(Options{Argv: []string{os.Args[0]}, Env: s.env(compiled(t, "testdata/partitioned.c")), Interval: time.Hour})
	defer s.Close()
	sample := s.snapshot()
	want := []GPU{{
		UUID: "GPU-whole", Name: "H100", Total: 80, Used: 10, Free: 69, Reserved: 1, Recovery: Read(1),
		Processes: []Process{},
		Instances: []GPU{
			{UUID: "MIG-0", Parent: "GPU-whole", Name: "H100 MIG 3g.40gb", Total: 40, Used: 10, Free: 29, Reserved: 1, Processes: []Process{}},
			{UUID: "MIG-2", Parent: "GPU-whole", Name: "H100 MIG 3g.40gb", Total: 40, Used: 10, Free: 29, Reserved: 1,
				Processes: []Process{{PID: 41, Bytes: Read(120)}, {PID: 42, Bytes: Read(7)}, {PID: 43, Bytes: Read(5)}}},
		},
	}}
	if diff := cmp.Diff(want, sample.GPUs); diff != "" {
		t.Error(diff)
	}
	if text := sample.GPUs[0].Trouble(); text != "the driver asks to reset the GPU" {
		t.Errorf("its trouble is %q", text)
	}
	if g, ok := sample.Find("MIG-2"); !ok || g.Total != 40 {
		t.Errorf("an instance is found as %+v", g)
	}
	// Event sets that fail at once must not make the sampler spin.
	began := cpu(t)
	<-time.After(300 * time.Millisecond)
	if used := cpu(t) - began; used > 150*time.Millisecond {
		t.Errorf("waiting for Xids took %v of CPU in 300ms", used)
	}
}

// cpu is the CPU time of the living children.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var sum time.Duration
	for _, pid := range children(t) {
		threads, _ := filepath.Glob(filepath.Join("/proc", itoa(pid), "task/*/schedstat"))
		for _, path := range threads {
			text, _ := os.ReadFile(path) // a thread that has just ended counts no more
			nanoseconds, _, _ := strings.Cut(string(text), " ")
			sum += time.Duration(atoi(nanoseconds))
		}
	}
	return sum
}
