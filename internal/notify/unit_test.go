package notify

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// setting returns the value of a setting of a unit.
func setting(unit, name string) string {
	for line := range strings.Lines(unit) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return strings.TrimSuffix(value, "\n")
		}
	}
	return "missing"
}

func TestUnit(t *testing.T) {
	u := Unit{
		Name: "glm", Program: "/opt/a b/sglaunch", Run: []string{"run", "-c", "/etc/100%/glm.toml", "--", "sh", "-c", `echo "$HOME"`},
		Dir: "/srv/my models", Paths: []string{"/etc", "/m x"}, Bin: "/opt/sglang/bin",
		Stop: 90*time.Second + time.Millisecond, Restart: 5 * time.Minute, Watchdog: time.Minute,
	}
	text := u.String()
	for name, want := range map[string]string{
		"RequiresMountsFor": `/etc "/m x"`,
		"ExecStartPre":      `-"/opt/a b/sglaunch" recover`,
		"ExecStart":         `"/opt/a b/sglaunch" run -c /etc/100%%/glm.toml -- sh -c "echo \"$$HOME\""`,
		"ExecStopPost":      `-"/opt/a b/sglaunch" recover`,
		"TimeoutStopSec":    "91s", "RestartSec": "300s", "WatchdogSec": "60s", "TimeoutStartSec": "10min",
		"Environment":      "PATH=/opt/sglang/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"WorkingDirectory": "/srv/my models",
		"KillMode":         "mixed", "OOMPolicy": "continue", "Delegate": "yes", "Type": "notify", "NotifyAccess": "main",
	} {
		if diff := cmp.Diff(want, setting(text, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if u.Observe = true; setting(u.String(), "TimeoutStartSec") != "infinity" {
		t.Error("systemd would end a start that sglaunch only observes")
	}
	u.Paths, u.Bin = nil, "/usr/bin"
	if text := u.String(); setting(text, "RequiresMountsFor") != "missing" || strings.HasPrefix(setting(text, "Environment"), "PATH=/usr/bin") {
		t.Errorf("%s", text)
	}
	for _, setting := range []string{"PrivateTmp=", "ProtectHome=", "NoNewPrivileges=", "MemoryDenyWriteExecute=", "PrivateDevices="} {
		if strings.Contains(text, "\n"+setting) {
			t.Errorf("%s breaks CUDA", setting)
		}
	}
}

func TestMounts(t *testing.T) {
	got := Mounts([]string{"/m/a", "", "rel", "/m/a/b", "/m/ab", "/", "/m/a/"})
	if want := []string{"/m/a", "/m/ab"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Whatever a word holds, it stays one word on one line, and no specifier.
func TestWordsStayWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.StringOf(rapid.SampledFrom([]rune("a1 \t\n\"'\\%$;é"))).Draw(t, "word")
		got := word(w, true)
		if strings.ContainsAny(got, "\n\t") || strings.Contains(strings.ReplaceAll(got, "%%", ""), "%") || strings.Contains(strings.ReplaceAll(got, "$$", ""), "$") {
			t.Fatalf("%q became %q", w, got)
		}
		if strings.ContainsAny(w, " '\";\\") && (got[0] != '"' || got[len(got)-1] != '"') {
			t.Fatalf("%q became %q", w, got)
		}
	})
}
