package patch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxSource bounds a file that we are ready to hold in memory.
const maxSource = 64 << 20

// inode is all of a file that a revert brings back besides its content.
type inode struct {
	Mode    uint32            `json:"mode"` // permission bits with setuid, setgid and sticky
	UID     uint32            `json:"uid"`
	GID     uint32            `json:"gid"`
	ModTime int64             `json:"mtime"` // nanoseconds since 1970
	Attrs   map[string][]byte `json:"attrs,omitempty"`
	Link    string            `json:"link,omitempty"` // target of a symbolic link
	links   uint64
	number  uint64
	device  uint64
}

// file is a regular file, or a symbolic link to one, as it was read.
type file struct {
	inode
	content []byte
	sum     string
}

// Hash is the SHA-256 of a content as plans and launch.toml write it.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// readFile reads a file with its inode. A symbolic link keeps its own inode
// and has the content of what it leads to.
func readFile(path string) (*file, error) {
	node, err := readInode(path)
	if err != nil {
		return nil, err
	}
	content, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	return &file{inode: node, content: content, sum: Hash(content)}, nil
}

func readInode(path string) (inode, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return inode{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	node := inode{
		Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid, ModTime: st.Mtim.Nano(),
		links: uint64(st.Nlink), number: st.Ino, device: uint64(st.Dev),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFLNK:
		link, err := os.Readlink(path)
		if err != nil {
			return inode{}, err
		}
		node.Link = link
	default:
		return inode{}, fmt.Errorf("%s is neither a regular file nor a link to one", path)
	}
	node.Attrs = readAttrs(path)
	return node, nil
}

func readBounded(path string) ([]byte, error) {
	// Non-blocking: whatever the path has become since it was looked at, opening
	// it must not wait for the other end of a pipe.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err == nil && len(content) > maxSource {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxSource>>20)
	}
	return content, err
}

// readAttrs reads the extended attributes that one may read: ACLs, labels and
// the user's own. A file system without them has none.
func readAttrs(path string) map[string][]byte {
	names := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, names)
	if err != nil || n == 0 {
		return nil
	}
	attrs := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimRight(string(names[:n]), "\x00"), "\x00") {
		if strings.HasPrefix(name, "trusted.overlay.") {
			continue // the overlay's own bookkeeping belongs to the inode
		}
		value := make([]byte, 64<<10)
		if n, err := unix.Lgetxattr(path, name, value); err == nil {
			attrs[name] = value[:n]
		}
	}
	return attrs
}

// same tells whether two inodes look the same from outside.
func (n inode) same(o inode) bool {
	return n.Mode == o.Mode && n.UID == o.UID && n.GID == o.GID && n.ModTime == o.ModTime && n.Link == o.Link
}

func (n inode) facts(path string) FileFacts {
	mode := fs.FileMode(n.Mode & 0o777)
	if n.Link != "" {
		mode |= fs.ModeSymlink
	}
	f := FileFacts{
		Mode: mode.String(), UID: n.UID, GID: n.GID, Links: n.links, Symlink: n.Link,
		ModTime: time.Unix(0, n.ModTime),
	}
	var st unix.Statfs_t
	if unix.Statfs(filepath.Dir(path), &st) == nil {
		f.FS = fsName(int64(st.Type))
		f.ReadOnly = st.Flags&unix.ST_RDONLY != 0
	}
	return f
}

func fsName(magic int64) string {
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.TMPFS_MAGIC: "tmpfs", unix.NFS_SUPER_MAGIC: "nfs",
		unix.SQUASHFS_MAGIC: "squashfs", unix.FUSE_SUPER_MAGIC: "fuse", 0x2fc12fc1: "zfs", 0x0bd00bd0: "lustre",
	}
	if name, ok := names[magic]; ok {
		return name
	}
	return fmt.Sprintf("0x%x", magic)
}

// obstacle says why a new file cannot be renamed over path, or put back later
// with its owner. It is empty where nothing is known to stand in the way.
func obstacle(path string, node inode) string {
	dir := filepath.Dir(path)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err == nil && st.Flags&unix.ST_RDONLY != 0 {
		return dir + " is on a read-only file system"
	}
	// The effective ids count, and capabilities with them; not the mode bits alone.
	if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Sprintf("%s cannot be written: %v", dir, err)
	}
	if immutable(dir) || node.Link == "" && immutable(path) {
		return path + " is immutable (chattr +i)"
	}
	if me := os.Geteuid(); me != 0 {
		groups, err := os.Getgroups()
		groups = append(groups, os.Getegid())
		if int(node.UID) != me || err != nil || !slices.Contains(groups, int(node.GID)) {
			return fmt.Sprintf("%s belongs to %d:%d, and user %d could not give a new file that owner", path, node.UID, node.GID, me)
		}
	}
	return ""
}

// immutable reads the inode flags that make a rename fail with EPERM.
func immutable(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	const immutableFlag, appendFlag = 0x10, 0x20 // FS_IMMUTABLE_FL, FS_APPEND_FL of linux/fs.h
	return err == nil && flags&(immutableFlag|appendFlag) != 0
}
