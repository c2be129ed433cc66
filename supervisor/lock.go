package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
)

// ErrAlreadyRunning says that a launch of that name lives on this box.
var ErrAlreadyRunning = errors.New("already running")

// holder is the content of a launch's lock file. The lock itself is held by a
// supervisor; while one is being replaced the shim's life speaks for it.
type holder struct {
	Shim   wire.Proc `json:"shim"`
	Boot   string    `json:"boot"`
	Socket string    `json:"socket,omitempty"` // of the launch, for who asks it
}

// alive reports whether the shim of a launch still runs.
func (h holder) alive() bool {
	return h.Boot == proc.BootID() && proc.Alive(proc.ID{PID: h.Shim.PID, Start: h.Shim.Start})
}

// orUnlocked is h, or what a living launch of that name without a lock file would
// have in it. Its folder was removed, as a logout does with $XDG_RUNTIME_DIR, or is
// that of another login; the record of the launch speaks for it then.
func orUnlocked(h holder, dir statedir.Dir, name string) holder {
	launches, err := dir.Launches(name)
	if err != nil {
		return h // no record, no launch
	}
	for _, l := range slices.Backward(launches) {
		if r, err := ReadLaunchRecord(l.Record()); err == nil && r.Ended.IsZero() && r.alive() {
			return holder{Shim: r.Shim, Boot: r.Boot}
		}
	}
	return h
}

func lockPath(dir statedir.Dir, name string) string {
	return filepath.Join(dir.Runtime, name+lockSuffix)
}

const lockSuffix = ".lock"

// takeName makes sure that no other living launch has this name. The lock is
// held until the process ends.
func takeName(s Setup, hello *wire.Hello) (*flock.Flock, error) {
	path := lockPath(s.State, s.Name)
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(statedir.FileMode))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", path, err)
	}
	var h holder
	before, err := os.ReadFile(path)
	if err == nil {
		_ = json.Unmarshal(before, &h) // an empty file is a new lock
	}
	if !h.alive() {
		h = orUnlocked(h, s.State, s.Name)
	}
	mine := h.Shim.PID == hello.PID && h.Shim.Start == hello.Start
	if !locked || h.alive() && !mine {
		_ = lock.Close()
		return nil, fmt.Errorf("cannot start %q: %w as process %d; sglaunch stop ends it, --server.name=NAME makes another",
			s.Name, ErrAlreadyRunning, h.Shim.PID)
	}
	socket, _ := s.socket() // where there is none, the launch says so itself
	data, err := json.Marshal(holder{Shim: wire.Proc{PID: hello.PID, Start: hello.Start}, Boot: proc.BootID(), Socket: socket})
	if err == nil && !bytes.Equal(data, before) { // who looks at a launch that lives finds its file whole
		err = os.WriteFile(path, data, statedir.FileMode)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write %q: %w", path, err), lock.Close())
	}
	return lock, nil
}
