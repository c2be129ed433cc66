package proc

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/eventually"
)

// A busy process uses CPU and faults; what it did stays counted when it ends.
func TestSamplerKeepsWhatTheDeadDid(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	p, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSampler()
	ids := []ID{p.ID}
	var a Activity
	for deadline := time.Now().Add(20 * time.Second); a.CPU < 50*time.Millisecond; {
		if time.Now().After(deadline) {
			t.Fatalf("no CPU time seen: %+v", a)
		}
		a = s.Sample(context.Background(), ids)
	}
	if a.Living != 1 || a.Faults == 0 {
		t.Errorf("reading %+v", a)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	b := s.Sample(context.Background(), ids)
	if b.Living != 0 || b.CPU < a.CPU || b.Faults < a.Faults {
		t.Errorf("after the end %+v, before %+v", b, a)
	}
}

// What a process gives to the disk is counted, as a download is.
func TestSamplerCountsWhatIsWritten(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "weights"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	self, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	s := NewSampler()
	before := s.Sample(context.Background(), []ID{self.ID})
	if _, err := file.Write(make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	after := s.Sample(context.Background(), []ID{self.ID})
	var system unix.Statfs_t
	if err := unix.Statfs(file.Name(), &system); err != nil {
		t.Fatal(err)
	}
	if onDisk := system.Type != unix.TMPFS_MAGIC; onDisk && len(after.Missing) == 0 && after.Written-before.Written < 4<<20 {
		t.Errorf("wrote 4 MiB, counted %d", after.Written-before.Written)
	}
}

func TestPicturesOfOurselves(t *testing.T) {
	self, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	pictures := Pictures(context.Background(), []ID{self.ID, {PID: 1 << 30, Start: 1}})
	if len(pictures) != 1 || !strings.Contains(pictures[0].String(), "cpu") {
		t.Errorf("pictures %v", pictures)
	}
}

// A compiler is known by its name, a worker of inductor by its command line;
// one that only waits is not named again.
func TestCompilersAreThoseThatWork(t *testing.T) {
	dir := t.TempDir()
	nvcc := filepath.Join(dir, "nvcc")
	text, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(nvcc, text, 0o700); err != nil {
		t.Fatal(err)
	}
	_, idle := child(t, nvcc, "-c", "echo up; sleep 100; :")
	_, worker := child(t, "python3", "-c", "print('up', flush=True)\nwhile True: pass", "torch/_inductor/compile_worker/__main__.py")
	_, other := child(t, "python3", "-c", "print('up', flush=True)\nwhile True: pass")
	ids := []ID{idle.ID, worker.ID, other.ID}
	s := NewSampler()
	if a := s.Sample(context.Background(), ids); len(a.Compilers) != 2 {
		t.Errorf("at first %+v", a.Compilers)
	}
	eventually.True(t, "the worker alone to be named", func() bool {
		a := s.Sample(context.Background(), ids)
		if a.States['R']+a.States['S'] != 3 {
			t.Errorf("states %v", a.States)
		}
		return len(a.Compilers) == 1 && a.Compilers[0].ID == worker.ID
	})
}
