package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"sglaunch/internal/proc"
)

// zombieLimit is how long a server may have lost a process that it needs before
// somebody says so.
const zombieLimit = 5 * time.Second

// A port that answers hides that the scheduler or the detokenizer is gone. It is
// found from the processes, whichever of them it is.
func TestZombieIsFound(t *testing.T) {
	t.Parallel()
	for title, says := range map[string]string{"sglang::scheduler_TP1": `TP1 .*is gone`, "sglang::detokenizer": `detokenizer .*is gone`} {
		t.Run(strings.TrimPrefix(title, "sglang::"), func(t *testing.T) {
			t.Parallel()
			s := startStanding(t, t.TempDir(), "glm", "[relaunch]\npolicy = \"never\"\n[gpu]\nsample = { serving = \"10s\" }\n")
			s.await(readyLine)
			victim := s.titled(title)
			if err := syscall.Kill(victim.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed := time.Now()
			s.await(says)
			if took := time.Since(killed); took > zombieLimit {
				t.Errorf("it took %s to find out, want %s at most", took, zombieLimit)
			} else {
				t.Logf("found after %s", took.Round(10*time.Millisecond))
			}
			s.signal(syscall.SIGTERM)
			s.wait()
		})
	}
}

// titled finds the process of the server that carries a title.
func (s standing) titled(title string) (found proc.Proc) {
	s.t.Helper()
	s.eventually("there is a "+title, func() bool {
		all, err := proc.Descendants(s.cmd.Process.Pid)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, p := range all {
			if strings.HasPrefix(proc.Command(p), title) {
				found = p
				return true
			}
		}
		return false
	})
	return found
}
