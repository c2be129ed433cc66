package gpu

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"time"
)

// limit is how long a test waits for something that must come.
const limit = 30 * time.Second

func itoa(n int) string { return strconv.Itoa(n) }

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func drain(r io.Reader) { io.Copy(io.Discard, r) }

// wait waits for a process, which must end within the limit.
func wait(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		cmd.Process.Kill()
		return fmt.Errorf("it was still there after %v: %w", limit, <-done)
	}
}

// fataler is what *testing.T and *rapid.T have in common here.
type fataler interface{ Fatal(args ...any) }

func roundTrip(t fataler, from, to any) {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}
