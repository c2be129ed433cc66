package detach

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree makes a root of a file system with these files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// standIn puts programs of that name on PATH that do what the script says.
func standIn(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// A manager is used where it runs and can be reached, and never guessed at.
func TestChoose(t *testing.T) {
	running := map[string]string{"/run/systemd/system/x": "", "/run/user/1000/systemd/private": ""}
	standIn(t, "systemd-run", "exit 0")
	for _, test := range []struct {
		files map[string]string
		host  Host
		want  Kind
	}{
		{running, Host{UID: 0}, System},
		{running, Host{UID: 1000, Runtime: "/run/user/1000"}, User},
		{running, Host{UID: 1001, Runtime: "/run/user/1001"}, Session},
		{running, Host{UID: 1000}, Session},
		{nil, Host{UID: 0}, Session},
	} {
		test.host.Root = tree(t, test.files)
		if got := Choose(test.host).Kind; got != test.want {
			t.Errorf("%+v: %s, want %s", test.host, got, test.want)
		}
	}
	t.Setenv("PATH", "/nowhere")
	if got := Choose(Host{Root: tree(t, running)}).Kind; got != Session {
		t.Errorf("without systemd-run: %s", got)
	}
}

// What the last logout takes away is told with its cure, and only where it does.
func TestTraps(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		way   Way
		want  []string
	}{
		{"no logind", nil, Way{Session, Host{UID: 1000, User: "ann"}}, nil},
		{"root", map[string]string{"/run/systemd/users/0": ""}, Way{System, Host{}}, nil},
		{"own service", map[string]string{"/run/systemd/users/1000": ""}, Way{User, Host{UID: 1000, User: "ann"}},
			[]string{`your last logout ends your services`, `RemoveIPC=yes`}},
		{"lingers", map[string]string{"/run/systemd/users/1000": "", "/var/lib/systemd/linger/ann": ""}, Way{User, Host{UID: 1000, User: "ann"}}, nil},
		{"session", map[string]string{"/run/systemd/users/1000": ""}, Way{Session, Host{UID: 1000, User: "ann"}}, []string{"RemoveIPC"}},
		{"system user", map[string]string{"/run/systemd/users/998": ""}, Way{Session, Host{UID: 998, User: "svc"}}, nil},
		{"killed", map[string]string{
			"/run/systemd/users/1000":                     "",
			"/etc/systemd/logind.conf":                    "[Login]\nKillUserProcesses=no\nRemoveIPC=yes\n",
			"/usr/lib/systemd/logind.conf.d/90-site.conf": "KillUserProcesses = true\n#RemoveIPC=yes\n",
			"/etc/systemd/logind.conf.d/10-early.conf":    "KillUserProcesses=no\nRemoveIPC=no\n",
		}, Way{Session, Host{UID: 1000, User: "ann"}}, []string{"KillUserProcesses=yes"}},
	} {
		test.way.host.Root = tree(t, test.files)
		got := test.way.Traps()
		if len(got) != len(test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(got[i], want) || !strings.Contains(got[i], "loginctl enable-linger ann") {
				t.Errorf("%s: %q lacks %q or its cure", test.name, got[i], want)
			}
		}
	}
}

// A service gets the words, folder and environment of whoever asked, by a file
// that is gone afterwards; no secret is among the words that others can read.
func TestHandedToAManager(t *testing.T) {
	dir := t.TempDir()
	standIn(t, "systemd-run", `printf '%s\n' "$@" >"`+dir+`/words"`)
	way := Way{System, Host{}}
	env := []string{"HF_TOKEN=hf_secret", "SGLAUNCH_STATE=/s", "HOME=/root", "NOTIFY_SOCKET=/theirs"}
	ended, err := way.Start(t.Context(), Launch{
		Name: "glm", Program: "/opt/sg launch", Args: []string{"run", "--", "x"}, Dir: "/models", Env: env,
		Folder: dir, Handed: "__handed", Recover: "recover",
	})
	if err != nil || ended == nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "words"))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, want := range []string{
		"--unit=sglaunch-run-glm.service", "--property=KillMode=mixed", "--property=LogRateLimitIntervalSec=0", "--setenv=SGLAUNCH_STATE=/s", "--setenv=HOME=/root",
		`--property=ExecStopPost=-"/opt/sg launch" recover`, "/opt/sg launch", "__handed",
	} {
		if !slices.Contains(words, want) {
			t.Errorf("the words lack %q: %q", want, words)
		}
	}
	if strings.Contains(string(data), "hf_secret") {
		t.Errorf("a secret is on show: %q", words)
	}
	path := words[len(words)-1]
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the handover: %v %v", info, err)
	}
	h, err := Take(path)
	if err != nil || h.Dir != "/models" || !slices.Equal(h.Args, []string{"run", "--", "x"}) {
		t.Errorf("%+v %v", h, err)
	}
	want := []string{"HF_TOKEN=hf_secret", "SGLAUNCH_STATE=/s", "HOME=/root", "NOTIFY_SOCKET=/ours"}
	if got := h.Environ([]string{"NOTIFY_SOCKET=/ours", "PATH=/bin", "HOME=/"}); !slices.Equal(got, want) {
		t.Errorf("the environment is %q", got)
	}
	if _, err := Take(path); err == nil {
		t.Error("a handover is taken twice")
	}
}

// What the manager says against it is told, and no file is left.
func TestManagerRefuses(t *testing.T) {
	dir := t.TempDir()
	standIn(t, "systemd-run", "echo 'Failed to connect to bus' >&2; exit 1")
	_, err := Way{User, Host{UID: 1000}}.Start(t.Context(), Launch{Name: "glm", Program: "/x", Folder: dir})
	if err == nil || !strings.Contains(err.Error(), "Failed to connect to bus") || !strings.Contains(err.Error(), "sglaunch-run-glm.service") {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A service is over once it has no process and none on its way.
func TestServiceIsOver(t *testing.T) {
	for shown, want := range map[string]bool{
		"ActiveState=inactive\nJob=\n":    true, // as systemd 252 shows one that is gone
		"ActiveState=failed\n":            true,
		"ActiveState=inactive\nJob=117\n": false, // it is about to begin
		"ActiveState=activating\nJob=\n":  false,
		"ActiveState=active\n":            false,
		"":                                false,
	} {
		if got := over(shown); got != want {
			t.Errorf("%q is over: %v", shown, got)
		}
	}
}
