package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"sglaunch/internal/plain"
)

// OpenToAsk is Open for whoever asks launches or reads what is kept of them.
// Where the state directory belongs to another user, root asks as that user, who
// this process then is for good: what lies there leads it to nothing that its
// owner could not do himself.
func OpenToAsk() (Dir, error) {
	d, err := find(os.Getenv, os.Geteuid())
	if err != nil {
		return Dir{}, err
	}
	if err := d.becomeOwner(); err != nil {
		return Dir{}, err
	}
	return d, d.make()
}

// becomeOwner makes root the owner of the state directory, if that is somebody
// else. The environment then says where it is: that user would look elsewhere.
func (d Dir) becomeOwner() error {
	if os.Geteuid() != 0 {
		return nil
	}
	path := d.State
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot use the folder %q: %w", path, plain.Error(err))
	}
	owner := info.Sys().(*syscall.Stat_t)
	if owner.Uid == 0 {
		return nil
	}
	uid, gid := int(owner.Uid), int(owner.Gid)
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		gid, _ = strconv.Atoi(u.Gid)
	}
	// The groups first: once the user is another one, they are fixed.
	if err := errors.Join(syscall.Setgroups([]int{gid}), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
		return fmt.Errorf("cannot ask as %s, to whom %q belongs: %w", userName(owner.Uid), path, err)
	}
	return errors.Join(os.Setenv("SGLAUNCH_STATE", d.State), os.Setenv("SGLAUNCH_RUNTIME", d.Runtime))
}
