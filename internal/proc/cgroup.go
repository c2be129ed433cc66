package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Cgroup is a control group (version 2) that was made for one attempt. Whoever
// is born in it stays in it, whatever becomes of its parents, session and
// environment, and the kernel ends all of it at one blow. It is a sign of
// membership beside the others, not instead of them: a process of root may leave
// it. Every method of a nil Cgroup does nothing.
type Cgroup struct {
	Path string `json:"path,omitempty"`
	Boot string `json:"boot,omitempty"`
	// Why says why there is none.
	Why string `json:"why,omitempty"`
}

// PlanCgroup says where the cgroup of that name will be: below our own. It can be
// noted before Make makes it, so that it is never there without a note. Name must
// be one that is never used again in this boot.
func PlanCgroup(name string) (*Cgroup, error) {
	own, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	return &Cgroup{Path: filepath.Join(own, name), Boot: BootID()}, nil
}

// Make makes the cgroup, where that is permitted: as root, or where our own was
// delegated to us. Nothing is limited by it. One that exists is somebody else's.
func (c *Cgroup) Make() error {
	if err := os.Mkdir(c.Path, 0o755); err != nil {
		return fmt.Errorf("cannot make a cgroup: %w", err)
	}
	return nil
}

// Open returns the folder of the cgroup, by whose descriptor a process can be
// started in it.
func (c *Cgroup) Open() (*os.File, error) {
	if c == nil {
		return nil, errors.ErrUnsupported
	}
	return os.Open(c.Path)
}

// Members returns the living processes in it, and in those that were made below
// it, by pid.
func (c *Cgroup) Members() []Proc {
	procs := map[int]Proc{}
	for _, folder := range c.folders() {
		for _, pid := range pidsIn(folder) {
			if p, err := Identify(pid); err == nil {
				procs[pid] = p
			}
		}
	}
	return living(procs)
}

// Populated reports whether anything lives in it or below it. The kernel counts,
// so that No is a proof.
func (c *Cgroup) Populated() bool {
	if c == nil {
		return false
	}
	text, err := os.ReadFile(filepath.Join(c.Path, "cgroup.events"))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) { // nothing can be removed that is populated
		return false
	}
	return !strings.Contains("\n"+string(text), "\npopulated 0\n")
}

// Kill ends everything in it with SIGKILL at one blow that no fork escapes.
// Kernels before 5.14 cannot; there the members have to be struck one by one.
func (c *Cgroup) Kill() error {
	if c == nil {
		return errors.ErrUnsupported
	}
	f, err := os.OpenFile(filepath.Join(c.Path, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot kill a cgroup: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString("1"); err != nil {
		return fmt.Errorf("cannot kill a cgroup: %w", err)
	}
	return nil
}

// Remove removes it, and those that were made below it, if nobody lives there.
func (c *Cgroup) Remove() {
	for _, folder := range slices.Backward(c.folders()) {
		_ = unix.Rmdir(folder) // one that is not empty stays
	}
}

// folders are its own and those below, a folder before what is in it.
func (c *Cgroup) folders() (all []string) {
	if c == nil {
		return nil
	}
	_ = filepath.WalkDir(c.Path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil // what vanishes meanwhile is no loss
	})
	return all
}

// pidsIn lists the processes of one cgroup. Those that our own /proc does not
// know read as 0 and are left out.
func pidsIn(folder string) (pids []int) {
	text, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
	for line := range strings.Lines(string(text)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isCgroup reports whether a folder is a cgroup of version 2.
func isCgroup(path string) bool {
	var system unix.Statfs_t
	return unix.Statfs(path, &system) == nil && system.Type == unix.CGROUP2_SUPER_MAGIC
}

// ownCgroup is the folder of our own cgroup: the one that lists us, so that no
// mistake about mounts and namespaces can lead elsewhere.
func ownCgroup() (string, error) {
	mounts, errMounts := os.ReadFile("/proc/self/mountinfo")
	groups, errGroups := os.ReadFile("/proc/self/cgroup")
	if err := errors.Join(errMounts, errGroups); err != nil {
		return "", fmt.Errorf("cannot find our cgroup: %w", err)
	}
	for _, folder := range cgroupFolders(string(mounts), string(groups)) {
		if isCgroup(folder) && slices.Contains(pidsIn(folder), os.Getpid()) {
			return folder, nil
		}
	}
	return "", errors.New("cannot find our cgroup: no cgroup of version 2 is mounted here, or ours is not below it")
}

// cgroupFolders says where the cgroup of a process may be found: its path in the
// hierarchy, below each place where (a part of) the hierarchy is mounted.
func cgroupFolders(mountinfo, cgroup string) (folders []string) {
	for _, p := range unified.places(mountinfo, cgroup) {
		folders = append(folders, p.folder())
	}
	return folders
}

// noteSuffix makes the name of the note about a cgroup from that of the records.
const noteSuffix = ".cgroup"

// NoteCgroup writes beside a records file which cgroup the attempt has (nil:
// none, and why), for whoever finds the records.
func NoteCgroup(records string, c *Cgroup, why error) error {
	if c == nil {
		c = &Cgroup{Boot: BootID(), Why: fmt.Sprint(why)}
	}
	text, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(records+noteSuffix, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot note the cgroup: %w", err)
	}
	return nil
}

// NotedCgroup returns the cgroup that was noted beside a records file; nil where
// there is none (yet, or any more), or where we are in it ourselves.
func NotedCgroup(records string) *Cgroup {
	text, err := os.ReadFile(records + noteSuffix)
	c := &Cgroup{}
	if err != nil || json.Unmarshal(text, c) != nil || c.Boot != BootID() || !isCgroup(c.Path) {
		return nil
	}
	for _, folder := range c.folders() {
		if slices.Contains(pidsIn(folder), os.Getpid()) {
			return nil
		}
	}
	return c
}
