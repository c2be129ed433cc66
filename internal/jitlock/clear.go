package jitlock

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// remote are the file systems on which another machine may hold a baton.
var remote = map[int64]bool{
	unix.NFS_SUPER_MAGIC: true, unix.SMB_SUPER_MAGIC: true, unix.SMB2_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true,
	unix.FUSE_SUPER_MAGIC: true, unix.V9FS_MAGIC: true, unix.CEPH_SUPER_MAGIC: true, unix.AFS_SUPER_MAGIC: true,
	unix.CODA_SUPER_MAGIC: true, unix.OCFS2_SUPER_MAGIC: true,
	0x0BD00BD0: true, // Lustre
	0x47504653: true, // GPFS
	0x19830326: true, // BeeGFS
	0x01161970: true, // GFS2
}

// Clear removes a baton that an attempt has left behind, which the caller
// vouches for: l was seen in the hands of one of its processes, and all of them
// are gone. Anything else than that very file, on a local disk, held by nobody,
// is left alone, with the reason as error.
func Clear(ctx context.Context, l Lock) (removed bool, err error) {
	now, ok := lockAt(l.Path, l.Kind)
	switch {
	case l.Kind != Baton:
		return false, errors.New("cannot remove a file lock: those who wait for it would lose it")
	case !ok:
		return false, nil // its holder removed it
	case now.inode != l.inode || now.device != l.device || !now.Modified.Equal(l.Modified):
		return false, fmt.Errorf("cannot remove the baton %q: it is another's by now", l.Path)
	case !local(l.Path):
		return false, fmt.Errorf("cannot remove the baton %q: it is on a disk that other machines may use", l.Path)
	case holders(ctx, map[string]bool{l.Path: true}, nil)[l.Path] != 0 || ctx.Err() != nil:
		return false, fmt.Errorf("cannot remove the baton %q: somebody may hold it", l.Path)
	}
	if err := os.Remove(l.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("cannot remove the baton: %w", err)
	}
	return true, nil
}

func local(path string) bool {
	var system unix.Statfs_t
	return unix.Statfs(path, &system) == nil && !remote[int64(system.Type)]
}
