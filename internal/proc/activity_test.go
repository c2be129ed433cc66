package proc

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
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
