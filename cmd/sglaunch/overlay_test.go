package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An overlay reaches the server though the person's own PYTHONPATH stands in the
// environment: neither Python nor a shell in between takes the other one.
func TestOverlayBesideAPathOfOnesOwn(t *testing.T) {
	t.Parallel()
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{
		"at once":         {strings.TrimSpace(string(python))},
		"through a shell": {"sh", "-c", `exec "$0" "$@"`, strings.TrimSpace(string(python))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{
				"own/pkg/__init__.py": "",
				"own/pkg/mod.py":      "X = ['a']\n",
				"server.py":           "import pkg.mod\nprint('X is', *pkg.mod.X)\n",
				"launch.toml": `[server]
python = "` + strings.TrimSpace(string(python)) + `"
[[patch]]
name = "more"
module = "pkg.mod"
method = "overlay"
edit = [{ find = "'a'", replace = "'a', 'b'" }]
`,
			} {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			args := append([]string{"run", "--relaunch.attempts=1", "-c", "launch.toml", "--"}, command...)
			l := startLaunch(t, dir, []string{"PYTHONPATH=" + filepath.Join(dir, "own")}, append(args, "server.py")...)
			l.wait()
			if !bytes.Contains(l.stdout.bytes(), []byte("X is a b")) {
				t.Errorf("%s%s", l.stdout.bytes(), l.stderr.bytes())
			}
		})
	}
}
