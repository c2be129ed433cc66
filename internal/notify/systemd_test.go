package notify

import (
	"strings"
	"testing"
	"time"

	"sglaunch/internal/serve"
)

var dawn = time.Date(2026, 2, 19, 3, 0, 0, 0, time.UTC)

// A story, line by line: what is known, and what systemd hears of it.
func TestSystemd(t *testing.T) {
	var s Systemd
	loading := serve.Status{Attempt: 1, State: "starting", Phase: "loading_weights"}
	serving := serve.Status{Attempt: 1, State: "up", Phase: "serving", Ready: true, Announced: true}
	stopping := serving
	stopping.State, stopping.Stop = "stopping", &serve.Stop{By: "SIGTERM"}
	ended := stopping
	ended.Exit = &serve.Exit{Code: 0, Reason: "stopped\nREADY=1"}
	for _, step := range []struct {
		name     string
		at       time.Duration
		st       serve.Status
		deadline time.Duration // 0 = none
		want     string
	}{
		{"begins", 0, loading, 10 * time.Minute, "STATUS=loading_weights\nEXTEND_TIMEOUT_USEC=660000000"},
		{"nothing new", time.Second, loading, 10 * time.Minute, ""},
		{"no progress: the same moment, said again", 20 * time.Second, loading, 10 * time.Minute, "EXTEND_TIMEOUT_USEC=640000000"},
		{"progress", 21 * time.Second, loading, 11 * time.Minute, "EXTEND_TIMEOUT_USEC=699000000"},
		{"the machine is late", 13 * time.Minute, loading, 11 * time.Minute, ""},
		{"ready", 14 * time.Minute, serving, 24 * time.Minute, "READY=1\nSTATUS=serving"},
		{"serves", 15 * time.Minute, serving, 24 * time.Minute, ""},
		{"stops", 30 * time.Minute, stopping, 31 * time.Minute, "STOPPING=1\nSTATUS=stopping (SIGTERM)\nEXTEND_TIMEOUT_USEC=120000000"},
		{"ended", 31 * time.Minute, ended, 0, "STATUS=ended with 0: stopped READY=1"},
	} {
		var deadline time.Time
		if step.deadline != 0 {
			deadline = dawn.Add(step.deadline)
		}
		if got := s.Tell(step.st, deadline, dawn.Add(step.at)); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}

// A launch that gives up before it was ready never says that it is.
func TestSystemdNeverReady(t *testing.T) {
	var s Systemd
	got := s.Tell(serve.Status{State: "ended", Exit: &serve.Exit{Code: 10, Reason: "used up"}}, time.Time{}, dawn)
	if strings.Contains(got, "READY=1") || !strings.Contains(got, "STOPPING=1") {
		t.Errorf("%q", got)
	}
}
