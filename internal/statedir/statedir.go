package statedir

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"sglaunch/internal/plain"
)

// Modes of everything that is made here.
const (
	DirMode  = 0o700
	FileMode = 0o600
)

// Dir is a state directory and its runtime directory. Both exist.
type Dir struct {
	State   string
	Runtime string
}

// Open finds both directories for this process and makes them where they are
// missing.
func Open() (Dir, error) { return open(os.Getenv, os.Geteuid()) }

func open(getenv func(string) string, uid int) (Dir, error) {
	d, err := find(getenv, uid)
	if err != nil {
		return Dir{}, err
	}
	return d, d.make()
}

// find says where both directories are to be.
func find(getenv func(string) string, uid int) (Dir, error) {
	state, err := statePath(getenv, uid)
	if err != nil {
		return Dir{}, err
	}
	return Dir{State: state, Runtime: runtimePath(getenv, uid, state, belongsTo)}, nil
}

// make makes what is missing, for this user alone.
func (d Dir) make() error {
	for _, folder := range []struct{ path, variable string }{
		{d.State, "SGLAUNCH_STATE"}, {d.Runtime, "SGLAUNCH_RUNTIME"},
		{d.launches(), "SGLAUNCH_STATE"}, {d.Patches(), "SGLAUNCH_STATE"},
	} {
		if err := makeOwn(folder.path); err != nil {
			return fmt.Errorf("%w; set %s to a folder that can be written", err, folder.variable)
		}
	}
	return nil
}

// History is the path of the database.
func (d Dir) History() string { return filepath.Join(d.State, "history.db") }

// Patches is the folder of the patch ledger.
func (d Dir) Patches() string { return filepath.Join(d.State, "patches") }

// Study is the folder of a study that is tuned; it may not exist yet.
func (d Dir) Study(name string) (string, error) {
	if !isName(name) {
		return "", fmt.Errorf("cannot use %q as the name of a study", name)
	}
	return filepath.Join(d.State, "tune", name), nil
}

func (d Dir) launches() string { return filepath.Join(d.State, "launches") }

// maxSocketPath is what sockaddr_un holds, less the NUL.
const maxSocketPath = 107

// Socket is the path of a launch's control socket.
func (d Dir) Socket(name string) (string, error) {
	if !isName(name) {
		return "", fmt.Errorf("cannot use %q as the name of a launch", name)
	}
	path := filepath.Join(d.Runtime, name+".sock")
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("cannot use %q as a socket: its path is longer than %d bytes; set SGLAUNCH_RUNTIME to a shorter folder", path, maxSocketPath)
	}
	return path, nil
}

func statePath(getenv func(string) string, uid int) (string, error) {
	for _, choice := range []struct {
		path string
		use  bool
	}{
		{getenv("SGLAUNCH_STATE"), true},
		{firstPath(getenv("STATE_DIRECTORY")), true},
		{"/var/lib/sglaunch", uid == 0},
		{under(getenv("XDG_STATE_HOME"), "sglaunch"), true},
		{under(getenv("HOME"), ".local/state/sglaunch"), true},
	} {
		if choice.use && choice.path != "" {
			return filepath.Abs(choice.path)
		}
	}
	return "", errors.New("cannot find a state directory: neither SGLAUNCH_STATE nor XDG_STATE_HOME nor HOME is set; set SGLAUNCH_STATE to a folder that can be written")
}

// runtimePath leaves out a session's directory that belongs to somebody else:
// su keeps the variable of the user before.
func runtimePath(getenv func(string) string, uid int, state string, belongs func(path string, uid int) bool) string {
	session := getenv("XDG_RUNTIME_DIR")
	for _, choice := range []struct {
		path string
		use  bool
	}{
		{getenv("SGLAUNCH_RUNTIME"), true},
		{under(getenv("SGLAUNCH_STATE"), "run"), true},
		{firstPath(getenv("RUNTIME_DIRECTORY")), true},
		{"/run/sglaunch", uid == 0},
		{under(session, "sglaunch"), belongs(session, uid)},
	} {
		if !choice.use || choice.path == "" {
			continue
		}
		if abs, err := filepath.Abs(choice.path); err == nil {
			return abs
		}
	}
	return filepath.Join(state, "run")
}

// firstPath takes the first of the colon-separated folders that systemd gives.
func firstPath(list string) string {
	paths := filepath.SplitList(list)
	if len(paths) == 0 {
		return ""
	}
	return paths[0]
}

func under(folder, name string) string {
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, name)
}

func belongsTo(path string, uid int) bool {
	info, err := os.Stat(path)
	return err == nil && info.Sys().(*syscall.Stat_t).Uid == uint32(uid)
}

// makeOwn makes a folder that is ours alone, or takes the one that exists if
// it belongs to us.
func makeOwn(path string) error {
	if err := os.MkdirAll(path, DirMode); err != nil {
		return fmt.Errorf("cannot make the folder %q: %w", path, plain.Error(err))
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("cannot use the folder %q: %w", path, plain.Error(err))
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != uint32(os.Geteuid()) {
		return fmt.Errorf("cannot use the folder %q: it belongs to %s", path, userName(owner))
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(path, DirMode); err != nil {
		return fmt.Errorf("cannot close the folder %q to others: %w", path, plain.Error(err))
	}
	return nil
}

// userName names a user as whoever is to become that user types it.
func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return fmt.Sprintf("user %s (runuser -u %s -- sglaunch ...)", u.Username, u.Username)
	}
	return "user " + number
}
