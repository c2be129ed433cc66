package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWhere(t *testing.T) {
	for _, c := range []struct {
		name           string
		env            map[string]string
		uid            int
		state, runtime string
	}{
		{"root", map[string]string{"HOME": "/root"}, 0, "/var/lib/sglaunch", "/run/sglaunch"},
		{"root with a session", map[string]string{"HOME": "/root", "XDG_RUNTIME_DIR": "/run/user/0", "XDG_STATE_HOME": "/x"}, 0, "/var/lib/sglaunch", "/run/sglaunch"},
		{"service", map[string]string{"STATE_DIRECTORY": "/var/lib/private/sg:/b", "RUNTIME_DIRECTORY": "/run/sg"}, 7, "/var/lib/private/sg", "/run/sg"},
		{"person", map[string]string{"HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/7"}, 7, "/home/a/.local/state/sglaunch", "/run/user/7/sglaunch"},
		{"person's choice", map[string]string{"HOME": "/home/a", "XDG_STATE_HOME": "/data"}, 7, "/data/sglaunch", "/data/sglaunch/run"},
		{"after su", map[string]string{"HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/8"}, 7, "/home/a/.local/state/sglaunch", "/home/a/.local/state/sglaunch/run"},
		{"no session", map[string]string{"HOME": "/home/a"}, 7, "/home/a/.local/state/sglaunch", "/home/a/.local/state/sglaunch/run"},
		{"rehearsal", map[string]string{"SGLAUNCH_STATE": "/tmp/r", "XDG_RUNTIME_DIR": "/run/user/7", "STATE_DIRECTORY": "/s"}, 0, "/tmp/r", "/tmp/r/run"},
		{"short sockets", map[string]string{"SGLAUNCH_STATE": "/long", "SGLAUNCH_RUNTIME": "/t"}, 7, "/long", "/t"},
	} {
		getenv := func(name string) string { return c.env[name] }
		state, err := statePath(getenv, c.uid)
		if err != nil || state != c.state {
			t.Errorf("%s: state %q, %v; want %q", c.name, state, err, c.state)
		}
		belongs := func(path string, uid int) bool { return path == fmt.Sprintf("/run/user/%d", uid) }
		if got := runtimePath(getenv, c.uid, state, belongs); got != c.runtime {
			t.Errorf("%s: runtime %q, want %q", c.name, got, c.runtime)
		}
	}
	if _, err := statePath(func(string) string { return "" }, 7); err == nil {
		t.Error("without any variable there is no state directory, and no error either")
	}
}

// opened is a state directory of this test's own.
func opened(t testing.TB) Dir {
	t.Helper()
	t.Setenv("SGLAUNCH_STATE", filepath.Join(t.TempDir(), "a", "state"))
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpenMakesFoldersOfOurOwn(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	d := opened(t)
	l, err := d.NewLaunch("glm", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.NewAttempt(1); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(d.State, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && e.IsDir() && info.Mode().Perm() != DirMode {
			t.Errorf("%s has mode %04o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(); err != nil {
		t.Errorf("opening again: %v", err)
	}
}

func TestOpenClosesAFolderThatWasOpen(t *testing.T) {
	state := t.TempDir()
	if err := os.Chmod(state, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SGLAUNCH_STATE", state)
	if _, err := Open(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(state); err != nil || info.Mode().Perm() != DirMode {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{taken: "not a directory", "/proc/sglaunch": "cannot make the folder"}
	if os.Geteuid() == 0 {
		foreign := t.TempDir()
		if err := os.Chown(foreign, 4242, 4242); err != nil {
			t.Fatal(err)
		}
		cases[foreign] = "it belongs to user 4242"
	} else {
		cases["/etc"] = "it belongs to user 0"
	}
	for path, want := range cases {
		t.Setenv("SGLAUNCH_STATE", path)
		_, err := Open()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "; set SGLAUNCH_STATE to") {
			t.Errorf("%s: got %v, want ... %s and a way out", path, err, want)
		}
	}
}

func TestAttempts(t *testing.T) {
	d := opened(t)
	began := time.Date(2026, 2, 19, 5, 52, 10, 123_000_000, time.UTC)
	l, err := d.NewLaunch("glm-5", began)
	if err != nil {
		t.Fatal(err)
	}
	if l.Name() != "glm-5" || !l.Began().Equal(began) || !strings.HasPrefix(l.ID, "20260219T055210.123Z-glm-5-") {
		t.Errorf("the launch %q is %q, begun %v", l.ID, l.Name(), l.Began())
	}
	for n := 1; n <= 11; n++ {
		a, err := l.NewAttempt(n)
		if err != nil {
			t.Fatal(err)
		}
		if current, err := filepath.EvalSymlinks(l.Current()); err != nil || filepath.Base(current) != filepath.Base(a.Path) {
			t.Errorf("current is %q, %v after attempt %d", current, err, n)
		}
		if info, err := os.Stat(a.Evidence()); err != nil || !info.IsDir() {
			t.Errorf("attempt %d has no folder for evidence: %v", n, err)
		}
	}
	// A supervisor that died on the way left the folder and nothing else.
	if err := errors.Join(os.Remove(l.Attempt(11).Evidence()), os.Remove(l.Current())); err != nil {
		t.Fatal(err)
	}
	if a, err := l.NewAttempt(11); err != nil || !exists(a.Evidence()) || !exists(l.Current()) {
		t.Errorf("attempt 11 again: %v", err)
	}
	if _, err := l.NewAttempt(0); err == nil {
		t.Error("attempt 0 was made")
	}
	again, err := d.OpenLaunch(l.ID)
	if err != nil {
		t.Fatal(err)
	}
	all, err := again.Attempts()
	if err != nil || len(all) != 11 || all[0].N != 1 || all[10].N != 11 {
		t.Errorf("attempts %v, %v", all, err)
	}
}

func TestOpenLaunchRefuses(t *testing.T) {
	d := opened(t)
	for _, id := range []string{"", "..", "../../etc", "20260219T055210.123Z-../x-0000", "20260219T055210.123Z-gone-0000", "x-y-0000"} {
		if l, err := d.OpenLaunch(id); err == nil {
			t.Errorf("%q opened %q", id, l.Path)
		}
	}
	for _, name := range []string{"", "..", "a/b", ".hidden", strings.Repeat("a", 65), "a\nb"} {
		if _, err := d.NewLaunch(name, time.Now()); err == nil {
			t.Errorf("a launch of the name %q was made", name)
		}
	}
}

func TestLaunchesSortByTime(t *testing.T) {
	d := opened(t)
	if err := os.Mkdir(filepath.Join(d.State, "launches", "lost+found"), DirMode); err != nil {
		t.Fatal(err)
	}
	base := time.Date(2026, 12, 31, 23, 59, 59, 999_000_000, time.FixedZone("east", 3*3600))
	var want []string
	for i, name := range []string{"b", "a-1", "a", "a"} {
		l, err := d.NewLaunch(name, base.Add(time.Duration(i)*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, l.ID)
	}
	ids := func(name string) []string {
		all, err := d.Launches(name)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, l := range all {
			ids = append(ids, l.ID)
		}
		return ids
	}
	if diff := cmp.Diff(want, ids("")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[2:], ids("a")); diff != "" {
		t.Error(diff)
	}
}

// Many at the same moment never meet.
func TestLaunchesAreUnique(t *testing.T) {
	d := opened(t)
	at := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				if _, err := d.NewLaunch("same", at); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if all, err := d.Launches("same"); err != nil || len(all) != 200 {
		t.Errorf("%d launches, %v", len(all), err)
	}
}

func TestSplitIDIsTheInverse(t *testing.T) {
	d := opened(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,63}`).Draw(t, "name")
		at := time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "at"))
		l, err := d.NewLaunch(name, at)
		if err != nil || l.Name() != name || !l.Began().Equal(at) {
			t.Fatalf("%q at %v became %q, %v", name, at, l.ID, err)
		}
	})
}

func TestSocket(t *testing.T) {
	short, err := Dir{Runtime: "/run/sglaunch"}.Socket("glm")
	if err != nil || short != "/run/sglaunch/glm.sock" {
		t.Errorf("got %q, %v", short, err)
	}
	if _, err := (Dir{Runtime: "/" + strings.Repeat("x", 100)}).Socket("glm"); err == nil || !strings.Contains(err.Error(), "SGLAUNCH_RUNTIME") {
		t.Errorf("a path that no socket can have: %v", err)
	}
	if _, err := (Dir{Runtime: "/run"}).Socket("../x"); err == nil {
		t.Error("a name may leave its folder")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
