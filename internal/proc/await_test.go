package proc

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

func TestAwaitEnd(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := AwaitEnd(ctx, p.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it lives: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := AwaitEnd(t.Context(), p.ID); err != nil { // a zombie is an end
		t.Error(err)
	}
	_ = cmd.Wait()
	if err := AwaitEnd(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
}
