package patch

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// mount makes a real file system for a test, where the test may; elsewhere the
// part of it that needs one is not run, and the rest is.
func mount(t *testing.T, source, target, kind string, flags uintptr, options string) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		t.Logf("no %s here: %v", kind, err)
		return false
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			t.Errorf("cannot unmount %s: %v", target, err)
		}
	})
	return true
}

// mountReadOnly makes a tree that nobody can write: by a read-only bind mount,
// or, without root, by its mode bits.
func mountReadOnly(t *testing.T, root string) {
	t.Helper()
	if mount(t, root, root, "", unix.MS_BIND, "") {
		if err := unix.Mount("", root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		return
	}
	if os.Geteuid() == 0 {
		t.Fatal("root without mounts cannot have a tree that it may not write")
	}
	chmodTree(t, root, 0o555)
	t.Cleanup(func() { chmodTree(t, root, 0o755) })
}
