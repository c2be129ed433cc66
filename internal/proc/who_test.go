package proc

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/eventually"
)

func TestWho(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	want := fmt.Sprintf(`^process %d \(sleep 1000, for \d+s`, cmd.Process.Pid)
	eventually.True(t, want+", once it has begun its program", func() bool { return regexp.MustCompile(want).MatchString(Who(cmd.Process.Pid)) })
	if got := Who(1 << 30); !strings.Contains(got, "nothing is known") {
		t.Errorf("nobody: %q", got)
	}
}

func TestContainerOf(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for text, want := range map[string]string{
		"0::/":                             "",
		"0::/user.slice/session-3.scope\n": "",
		"0::/system.slice/docker-" + id + ".scope":                                    id[:12],
		"12:devices:/docker/" + id + "\n11:cpu:/x":                                    id[:12],
		"0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-" + id + ".scope": id[:12],
		"0::/machine.slice/libpod-" + id + ".scope/container":                         id[:12],
		"0::/x/" + id[:63]: "",
	} {
		if got := containerOf(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestShortAge(t *testing.T) {
	for age, want := range map[time.Duration]string{
		1500 * time.Millisecond: "2s", 125 * time.Second: "2m5s", 3*time.Hour + 7*time.Minute: "3h07m", 72 * time.Hour: "3 days",
	} {
		if got := shortAge(age); got != want {
			t.Errorf("%v: got %q, want %q", age, got, want)
		}
	}
}
