package patch

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		os.Exit(runChild(role))
	}
	goleak.VerifyTestMain(m)
}

// fastDir is a temporary folder in memory where there is one: what is tried on
// it many times is the order of calls, not the disk.
func fastDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "patch-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// pythonExe is an interpreter past shims and links.
type pythonExe struct{ Exe, Version string }

func askPython(name string) (python pythonExe, err error) {
	const script = `import json, sys; print(json.dumps({"Exe": getattr(sys, "_base_executable", sys.executable), "Version": "%d.%d" % sys.version_info[:2]}))`
	out, err := exec.Command(name, "-I", "-S", "-c", script).Output()
	if err != nil {
		return python, err
	}
	return python, json.Unmarshal(out, &python)
}

// realPython is the one that the name on PATH means.
var realPython = sync.OnceValues(func() (pythonExe, error) { return askPython("python3") })

// venv is a virtual environment built by hand, as venv and uv lay them out.
type venv struct {
	t    *testing.T
	root string
	site string
}

func newVenv(t *testing.T) *venv { return newVenvAt(t, t.TempDir()) }

func newVenvAt(t *testing.T, root string) *venv {
	t.Helper()
	python, err := realPython()
	if err != nil {
		t.Fatalf("the tests need python3: %v", err)
	}
	return newVenvOf(t, root, python)
}

func newVenvOf(t *testing.T, root string, python pythonExe) *venv {
	t.Helper()
	v := &venv{t: t, root: root, site: filepath.Join(root, "lib", "python"+python.Version, "site-packages")}
	v.must(os.MkdirAll(v.site, 0o755))
	v.must(os.MkdirAll(filepath.Join(root, "bin"), 0o755))
	v.must(os.Symlink(python.Exe, filepath.Join(root, "bin", "python3")))
	v.must(os.Symlink("python3", filepath.Join(root, "bin", "python")))
	v.write(filepath.Join(root, "pyvenv.cfg"), "home = "+filepath.Dir(python.Exe)+"\ninclude-system-site-packages = false\nversion = "+python.Version+"\n")
	return v
}

func (v *venv) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

func (v *venv) write(path, text string) {
	v.t.Helper()
	v.must(os.MkdirAll(filepath.Dir(path), 0o755))
	v.must(os.WriteFile(path, []byte(text), 0o644))
}

// install lays a distribution down as pip does: files, metadata and RECORD. The
// times are of some day long gone, as in an image.
func (v *venv) install(name, version string, files map[string]string) {
	v.t.Helper()
	info := fmt.Sprintf("%s-%s.dist-info", name, version)
	all := map[string]string{
		info + "/METADATA":  fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version),
		info + "/INSTALLER": "pip\n",
	}
	for path, text := range files {
		all[path] = text
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			if init := dir + "/__init__.py"; files[init] == "" {
				all[init] = ""
			}
		}
	}
	var record strings.Builder
	for _, path := range sortedKeys(all) {
		v.write(filepath.Join(v.site, path), all[path])
		sum := sha256.Sum256([]byte(all[path]))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", path, base64.RawURLEncoding.EncodeToString(sum[:]), len(all[path]))
	}
	fmt.Fprintf(&record, "%s/RECORD,,\n", info)
	v.write(filepath.Join(v.site, info, "RECORD"), record.String())
	v.age()
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// age gives everything in the environment an old time with odd nanoseconds.
func (v *venv) age() {
	v.t.Helper()
	n := int64(0)
	v.must(filepath.WalkDir(v.root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n++
		ts := unix.NsecToTimespec(time.Date(2026, 2, 19, 5, 52, int(n%60), 123456789+int(n), time.UTC).UnixNano())
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	}))
}

func (v *venv) path(parts ...string) string {
	return filepath.Join(append([]string{v.site}, parts...)...)
}

func (v *venv) python() string { return filepath.Join(v.root, "bin", "python") }

func (v *venv) interpreter() Interpreter {
	return Interpreter{Python: v.python(), Dir: v.t.TempDir(), Env: []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}}
}

// run runs Python code in the environment and returns what it printed.
func (v *venv) run(code string, env ...string) string {
	v.t.Helper()
	cmd := exec.Command(v.python(), "-c", code)
	cmd.Dir = v.t.TempDir()
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		v.t.Fatalf("python: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// picture is all that one can see of a file, but for the inode change time.
type picture struct {
	Mode    fs.FileMode
	UID     uint32
	GID     uint32
	ModTime int64
	Links   uint64
	Inode   uint64
	Sum     string
	Link    string
}

// snapshot pictures every file and folder of a tree.
func snapshot(t *testing.T, root string) map[string]picture {
	t.Helper()
	all := map[string]picture{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		p, err := takePicture(path)
		all[strings.TrimPrefix(path, root)] = p
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func takePicture(path string) (picture, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return picture{}, err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return picture{}, err
	}
	p := picture{Mode: info.Mode(), UID: st.Uid, GID: st.Gid, ModTime: st.Mtim.Nano()}
	switch {
	case info.Mode().IsRegular():
		content, err := os.ReadFile(path)
		if err != nil {
			return p, err
		}
		sum := sha256.Sum256(content)
		p.Sum, p.Links, p.Inode = hex.EncodeToString(sum[:]), uint64(st.Nlink), st.Ino
	case info.Mode()&fs.ModeSymlink != 0:
		p.Link, err = os.Readlink(path)
	}
	return p, err
}

// same fails the test where two snapshots differ in anything.
func same(t *testing.T, before, after map[string]picture) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the tree is not what it was (-before +after):\n%s", diff)
	}
}

func ledger(t *testing.T) *Ledger {
	t.Helper()
	l, err := OpenLedger(filepath.Join(t.TempDir(), "patches"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var someOwner = Owner{PID: 4711, StartTime: 815, BootID: "b", Launch: "night"}

func plan(t *testing.T, l *Ledger, v *venv, patches ...Patch) *Plan {
	t.Helper()
	p, err := MakePlan(t.Context(), l, v.interpreter(), patches)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func apply(t *testing.T, l *Ledger, p *Plan, launch string) *Applied {
	t.Helper()
	owner := someOwner
	owner.Launch = launch
	a, err := l.Apply(t.Context(), p, owner)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func revert(t *testing.T, l *Ledger, launch string) *Reverted {
	t.Helper()
	r, err := l.Revert(t.Context(), launch)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// nothingHeld: no file is patched, and no original is kept.
func nothingHeld(t *testing.T, l *Ledger) {
	t.Helper()
	if held, err := l.Status(); err != nil || len(held) > 0 {
		t.Errorf("status is %+v, %v", held, err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want one with %q", err, want)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// chmodTree sets the mode of every folder.
func chmodTree(t *testing.T, root string, mode fs.FileMode) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, mode)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
