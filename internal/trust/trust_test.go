package trust

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Another user, who need not exist.
const stranger = 4242

// The rules bind root alone. Elsewhere this test holds that they bind nobody
// else, with the same files as far as their owner may be chosen.
func TestCheck(t *testing.T) {
	isRoot := os.Geteuid() == 0
	cases := []struct {
		name    string
		make    func(t *testing.T, folder string) string
		owner   bool // needs chown
		refused bool
	}{
		{"own", func(t *testing.T, folder string) string { return file(t, folder, 0o600, -1) }, false, false},
		{"readable by all", func(t *testing.T, folder string) string { return file(t, folder, 0o644, -1) }, false, false},
		{"writable by group", func(t *testing.T, folder string) string { return file(t, folder, 0o664, -1) }, false, false},
		{"writable by others", func(t *testing.T, folder string) string { return file(t, folder, 0o646, -1) }, false, true},
		{"of a stranger", func(t *testing.T, folder string) string { return file(t, folder, 0o600, stranger) }, true, true},
		{"a link of ours", func(t *testing.T, folder string) string {
			return link(t, folder, "a", file(t, folder, 0o600, -1), -1)
		}, false, false},
		{"a link of a stranger to a file of ours", func(t *testing.T, folder string) string {
			return link(t, folder, "a", file(t, folder, 0o600, -1), stranger)
		}, true, true},
		{"a ConfigMap", configMap, false, false},
		{"a ConfigMap with a link of a stranger", func(t *testing.T, folder string) string {
			path := configMap(t, folder)
			chown(t, filepath.Join(folder, "..data"), stranger)
			return path
		}, true, true},
	}
	for _, c := range cases {
		if c.owner && !isRoot {
			continue // only root makes files of others
		}
		t.Run(c.name, func(t *testing.T) {
			path := c.make(t, t.TempDir())
			for _, err := range []error{Check(path), readError(path)} {
				if got, want := errors.Is(err, ErrUntrusted), c.refused && isRoot; got != want {
					t.Errorf("refused is %v, want %v: %v", got, want, err)
				}
			}
		})
	}
}

// Without root's rights, the same untrusted file is read: it can order nothing
// that its reader could not do anyway. As root, a copy of this test drops them.
func TestOthersMayReadWhatTheyLike(t *testing.T) {
	if path := os.Getenv("TRUST_TEST_FILE"); path != "" {
		if _, err := Read(path, 100); err != nil {
			t.Errorf("user %d: %v", os.Geteuid(), err)
		}
		return
	}
	folder, err := os.MkdirTemp("/tmp", "trust") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	path := file(t, folder, 0o666, -1)
	again := exec.Command(copyOfTest(t, folder), "-test.run=^TestOthersMayReadWhatTheyLike$")
	again.Env = append(os.Environ(), "TRUST_TEST_FILE="+path)
	again.Dir = folder
	if os.Geteuid() == 0 {
		again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	}
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestReadRefuses(t *testing.T) {
	folder := t.TempDir()
	fifo := filepath.Join(folder, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	loop := link(t, folder, "loop", "loop", -1)
	for path, want := range map[string]string{
		folder:                               "not a regular file",
		fifo:                                 "not a regular file",
		loop:                                 "too many levels of symbolic links",
		filepath.Join(folder, "none"):        "no such file or directory",
		filepath.Join(fifo, "below"):         "not a directory",
		file(t, folder, 0o600, -1):           "larger than 3 bytes",
		link(t, folder, "gone", "gone2", -1): "no such file or directory",
	} {
		if _, err := Read(path, 3); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

func TestReadGivesTheContent(t *testing.T) {
	path := file(t, t.TempDir(), 0o600, -1)
	got, err := Read(path, 7)
	if err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}

// A file that lies behind ".." and several links is the one that is checked.
func TestResolve(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := file(t, filepath.Join(folder, "a"), 0o600, -1)
	link(t, folder, "l1", "a/b", -1)
	link(t, filepath.Join(folder, "a/b"), "l2", "../../l1/../launch.toml", -1)
	got, err := resolve(folder + "//l1/./l2")
	real, realErr := filepath.EvalSymlinks(want)
	if err != nil || realErr != nil || got != real {
		t.Errorf("got %q, %v; want %q, %v", got, err, real, realErr)
	}
}

func readError(path string) error {
	_, err := Read(path, 100)
	return err
}

// configMap lays a file out as the kubelet does.
func configMap(t *testing.T, folder string) string {
	t.Helper()
	version := filepath.Join(folder, "..2026_02_19_05_52_10.1")
	if err := os.Mkdir(version, 0o755); err != nil {
		t.Fatal(err)
	}
	file(t, version, 0o644, -1)
	link(t, folder, "..data", filepath.Base(version), -1)
	return link(t, folder, "launch.toml", "..data/launch.toml", -1)
}

func file(t *testing.T, folder string, mode os.FileMode, owner int) string {
	t.Helper()
	path := filepath.Join(folder, "launch.toml")
	if err := os.WriteFile(path, []byte("content"), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // past the umask
		t.Fatal(err)
	}
	chown(t, path, owner)
	return path
}

func link(t *testing.T, folder, name, target string, owner int) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	chown(t, path, owner)
	return path
}

func chown(t *testing.T, path string, owner int) {
	t.Helper()
	if owner < 0 {
		return
	}
	if err := os.Lchown(path, owner, owner); err != nil {
		t.Fatal(err)
	}
}

// copyOfTest puts this program where any user may run it.
func copyOfTest(t *testing.T, folder string) string {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "trust.test")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
