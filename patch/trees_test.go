package patch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// cached links every file of a tree into a cache, as uv does, and returns it.
func cached(t *testing.T, v *venv) string {
	t.Helper()
	cache := filepath.Join(filepath.Dir(v.root), "cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"tiny/core/switch.py", "tiny/other.py"} {
		if err := os.Link(v.path(name), filepath.Join(cache, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	return cache
}

// T8, T9, T32: a cache that shares the files by hard links keeps its bytes and
// its links, whatever happens.
func TestHardLinkedCacheIsUntouched(t *testing.T) {
	t.Parallel()
	v := newVenvAt(t, filepath.Join(t.TempDir(), "venv"))
	v.install("tiny", "1.2.0", tiny)
	cache := cached(t, v)
	before, shared := snapshot(t, v.root), snapshot(t, cache)
	l := ledger(t)
	p := plan(t, l, v, twoFiles()...)
	if got := p.Targets[0]; got.File.Links != 2 || len(got.Notes) == 0 {
		t.Errorf("the plan does not tell of the links: %+v", got)
	}
	apply(t, l, p, "night")
	for path, was := range shared {
		now, err := takePicture(cache + path)
		if err != nil || now.Sum != was.Sum || now.ModTime != was.ModTime {
			t.Errorf("%s changed: %v", path, err)
		}
	}
	revert(t, l, "night")
	same(t, shared, snapshot(t, cache))
	same(t, before, snapshot(t, v.root)) // the very inodes are back
}

// A cache that is written through its own link while the patch is in place
// does not get into the restored file.
func TestOriginalIsWhatWasHashed(t *testing.T) {
	t.Parallel()
	v := newVenvAt(t, filepath.Join(t.TempDir(), "venv"))
	v.install("tiny", "1.2.0", tiny)
	cache := cached(t, v)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	shared := filepath.Join(cache, "0")
	info, err := os.Stat(shared)
	v.must(err)
	v.must(os.WriteFile(shared, []byte("garbage"), 0o644))
	v.must(os.Chtimes(shared, info.ModTime(), info.ModTime())) // not even the time tells
	revert(t, l, "night")
	if got := readText(t, v.path("tiny/core/switch.py")); got != tiny["tiny/core/switch.py"] {
		t.Errorf("restored %q", got)
	}
}

// T10: uv's symlink mode. The link is replaced and comes back; what it leads to
// stays as it is.
func TestSymlinkedFile(t *testing.T) {
	t.Parallel()
	v := newVenvAt(t, filepath.Join(t.TempDir(), "venv"))
	v.install("tiny", "1.2.0", tiny)
	target := filepath.Join(filepath.Dir(v.root), "store.py")
	path := v.path("tiny/core/switch.py")
	v.must(os.Rename(path, target))
	v.must(os.Symlink(target, path))
	v.age()
	before, store := snapshot(t, v.root), snapshot(t, target)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	if got := v.run(askSwitch, "PYTHONDONTWRITEBYTECODE=1"); got != "True" {
		t.Errorf("patched code says %s", got)
	}
	same(t, store, snapshot(t, target))
	revert(t, l, "night")
	same(t, before, snapshot(t, v.root))
	same(t, store, snapshot(t, target))
}

// A folder that is a link leads out of the package: what is there is not ours.
func TestFolderThatLeadsOut(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	away := filepath.Join(t.TempDir(), "core")
	v.must(os.Rename(v.path("tiny/core"), away))
	v.must(os.Symlink(away, v.path("tiny/core")))
	if got := plan(t, nil, v, switchOn()).Targets[0]; !got.Refused || got.State != Unsupported {
		t.Errorf("target is %+v", got)
	}
}

// T29: a container's overlay. The lower layer is never written, and the merged
// view is what it was.
func TestOverlayFileSystem(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	lower := newVenvAt(t, filepath.Join(base, "lower"))
	lower.install("tiny", "1.2.0", tiny)
	for _, dir := range []string{"upper", "work", "merged"} {
		lower.must(os.Mkdir(filepath.Join(base, dir), 0o755))
	}
	// Upper and work on one file system that takes xattrs; a tmpfs does.
	if !mount(t, "tmpfs", filepath.Join(base, "upper"), "tmpfs", 0, "size=8m") {
		return
	}
	lower.must(os.MkdirAll(filepath.Join(base, "upper/u"), 0o755))
	lower.must(os.MkdirAll(filepath.Join(base, "upper/w"), 0o755))
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper/u,workdir=%[1]s/upper/w", base)
	if !mount(t, "overlay", filepath.Join(base, "merged"), "overlay", 0, options) {
		return
	}
	v := &venv{t: t, root: filepath.Join(base, "merged")}
	rel, err := filepath.Rel(lower.root, lower.site)
	lower.must(err)
	v.site = filepath.Join(v.root, rel)
	below, before := snapshot(t, lower.root), withoutInodes(snapshot(t, v.root))
	for _, state := range []string{t.TempDir(), filepath.Join(v.root, "state")} { // outside the overlay, and in it
		l, err := OpenLedger(state)
		lower.must(err)
		p := plan(t, l, v, twoFiles()...)
		if p.Targets[0].File.FS != "overlay" {
			t.Errorf("file system is %s", p.Targets[0].File.FS)
		}
		apply(t, l, p, "night")
		if got := v.run(askSwitch, "PYTHONDONTWRITEBYTECODE=1"); got != "True" {
			t.Errorf("patched code says %s", got)
		}
		revert(t, l, "night")
		os.RemoveAll(filepath.Join(v.root, "state"))
		after := withoutInodes(snapshot(t, v.root))
		before[""], after[""] = picture{}, picture{} // the state folder came and went in it
		same(t, before, after)
		same(t, below, snapshot(t, lower.root))
	}
}

// withoutInodes leaves out what a copy-up changes by its nature.
func withoutInodes(all map[string]picture) map[string]picture {
	for path, p := range all {
		p.Inode, p.Links = 0, 0
		all[path] = p
	}
	return all
}

// T28: a disk that is really full, on the side of the package and on the side
// of the ledger, with ever less room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, full := range []string{"package", "ledger", "both"} {
		t.Run(full, func(t *testing.T) {
			base := t.TempDir()
			if !mount(t, "tmpfs", base, "tmpfs", 0, "size=4m") {
				return
			}
			root, state := filepath.Join(base, "venv"), filepath.Join(base, "state")
			switch full {
			case "package":
				state = t.TempDir()
			case "ledger":
				root = filepath.Join(t.TempDir(), "venv")
			}
			st := newStage(t, root, state)
			st.copied = full != "both"
			for free := 16; free >= 0; free-- { // pages
				release := fill(t, base, free)
				err := st.apply(st.ledger(t, osDisk{}))
				if err != nil {
					st.unchanged(t, fmt.Sprintf("apply with %d pages free: %v", free, err))
				}
				revertErr := st.revert(st.ledger(t, osDisk{}))
				release()
				if err == nil && free == 0 {
					t.Error("a full disk took the patch")
				}
				if full == "both" && revertErr != nil && err == nil {
					t.Logf("no revert with %d pages free: %v", free, revertErr)
				}
				st.recovered(t, fmt.Sprintf("recovery with %d pages free: %v, %v", free, err, revertErr))
			}
		})
	}
}

// fill takes all room of a file system but some pages.
func fill(t *testing.T, dir string, pages int) (release func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	page := make([]byte, os.Getpagesize())
	size := int64(0)
	for {
		n, err := f.Write(page)
		size += int64(n)
		if err != nil {
			break
		}
	}
	if err := f.Truncate(max(0, size-int64(pages*len(page)))); err != nil {
		t.Fatal(err)
	}
	f.Close()
	return func() { os.Remove(path) }
}

// T30: an immutable file is found out by the plan, before anything is written.
func TestImmutableFile(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	path := v.path("tiny/core/switch.py")
	f, err := os.Open(path)
	v.must(err)
	defer f.Close()
	const immutableFlag = 0x10
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, immutableFlag); err != nil {
		t.Logf("no immutable files here: %v", err)
		return
	}
	defer unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0)
	if got := plan(t, nil, v, switchOn()).Targets[0]; !got.Refused || got.State != Pristine {
		t.Errorf("target is %+v", got)
	}
}

// The mode, the owner and the attributes of the original are on the patched
// file too, and back afterwards.
func TestModeOwnerAndAttributes(t *testing.T) {
	t.Parallel()
	v := tinyVenv(t)
	path := v.path("tiny/core/switch.py")
	v.must(os.Chmod(path, 0o640))
	if os.Geteuid() == 0 {
		v.must(os.Chown(path, 1234, 4321))
	}
	attrs := unix.Setxattr(path, "user.note", []byte("mine"), 0) == nil
	before := snapshot(t, v.root)
	l := ledger(t)
	apply(t, l, plan(t, l, v, switchOn()), "night")
	now, err := readInode(path)
	v.must(err)
	was := before[path[len(v.root):]]
	if now.Mode != uint32(was.Mode.Perm()) || now.UID != was.UID || now.GID != was.GID {
		t.Errorf("patched file has %o %d:%d", now.Mode, now.UID, now.GID)
	}
	if attrs && string(now.Attrs["user.note"]) != "mine" {
		t.Errorf("patched file has attributes %v", now.Attrs)
	}
	revert(t, l, "night")
	same(t, before, snapshot(t, v.root))
}
