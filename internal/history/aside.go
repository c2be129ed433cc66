package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

var errUnsound = errors.New("the database is damaged")

// check reads every page once. The database is a few megabytes.
func check(ctx context.Context, conn *sql.Conn) error {
	var found string
	if err := conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s", errUnsound, found)
	}
	return nil
}

// companions of a database: its log and the index of that.
var companions = []string{"-wal", "-shm", "-journal"}

// setAside renames a damaged database and what belongs to it; nothing is
// deleted. It is left where it is while another launch has it open: SQLite
// would mix the old file with the new one's log.
func setAside(ctx context.Context, path string, damage error) (to string, err error) {
	lock := lockOf(path)
	locked, err := lock.TryLock()
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if !locked {
		return "", fmt.Errorf("%w; it is set aside once no launch has it open", damage)
	}
	if !stillCorrupt(ctx, path) {
		return "", nil // another launch was faster
	}
	to = fmt.Sprintf("%s.damaged-%s", path, time.Now().UTC().Format("20060102T150405.000Z"))
	if err := os.Rename(path, to); err != nil {
		return "", fmt.Errorf("%w; it cannot be set aside: %v", damage, err)
	}
	for _, c := range companions {
		if err := os.Rename(path+c, to+c); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("%w; it cannot be set aside: %v", damage, err)
		}
	}
	return to, nil
}

func stillCorrupt(ctx context.Context, path string) bool {
	db, err := sql.Open("sqlite3", dsn(path, "mode", "rw"))
	if err != nil {
		return false
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return isCorrupt(err)
	}
	defer conn.Close()
	return isCorrupt(check(ctx, conn))
}

// lockOf is held shared by every launch that has the database open.
func lockOf(path string) *flock.Flock {
	return flock.New(path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(fileMode))
}

// journalMode is WAL, but not where several hosts may share the file: its
// index is shared memory.
func journalMode(path string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return "WAL"
	}
	switch uint32(fs.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
		unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.V9FS_MAGIC,
		unix.FUSE_SUPER_MAGIC, lustreMagic, gpfsMagic:
		return "DELETE"
	}
	return "WAL"
}

// Not in golang.org/x/sys: their file systems are not in the kernel's tree.
const (
	lustreMagic = 0x0BD00BD0
	gpfsMagic   = 0x47504653
)
