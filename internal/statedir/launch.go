package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/google/renameio/v2"

	"sglaunch/internal/plain"
)

// Launch is the folder of one sglaunch run.
type Launch struct {
	ID   string
	Path string
}

// Attempt is the folder of one attempt of a launch.
type Attempt struct {
	N    int // from 1
	Path string
}

const (
	stampForm = "20060102T150405.000Z"
	suffixLen = len("-0000")
	tries     = 100 // each with another random suffix
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// isName keeps names from leaving their folder.
func isName(name string) bool { return nameForm.MatchString(name) }

// NewLaunch makes the folder of a launch. Its ID is the time in UTC, the name
// and a random suffix, so that IDs sort by time and never meet.
func (d Dir) NewLaunch(name string, at time.Time) (Launch, error) {
	if !isName(name) {
		return Launch{}, fmt.Errorf("cannot use %q as the name of a launch", name)
	}
	for range tries {
		id := fmt.Sprintf("%s-%s-%04x", at.UTC().Format(stampForm), name, rand.N(1<<16))
		l := Launch{ID: id, Path: filepath.Join(d.launches(), id)}
		err := os.Mkdir(l.Path, DirMode)
		switch {
		case err == nil:
			return l, errors.Join(os.Mkdir(l.attempts(), DirMode), syncDir(d.launches()))
		case !errors.Is(err, fs.ErrExist):
			return Launch{}, fmt.Errorf("cannot make the folder %q: %w", l.Path, plain.Error(err))
		}
	}
	return Launch{}, fmt.Errorf("cannot find a free name for a launch in %q", d.launches())
}

// OpenLaunch returns the launch of that ID.
func (d Dir) OpenLaunch(id string) (Launch, error) {
	if _, _, ok := splitID(id); !ok {
		return Launch{}, fmt.Errorf("cannot use %q as the id of a launch", id)
	}
	l := Launch{ID: id, Path: filepath.Join(d.launches(), id)}
	if _, err := os.Stat(l.Path); err != nil {
		return Launch{}, fmt.Errorf("cannot find the launch %q: %w", id, plain.Error(err))
	}
	return l, nil
}

// RemakeLaunch returns the launch of that ID. Folders of it that somebody has
// removed are made again, and that of attempt n, where n is not 0.
func (d Dir) RemakeLaunch(id string, n int) (Launch, error) {
	l, err := d.OpenLaunch(id)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return l, err
	}
	l = Launch{ID: id, Path: filepath.Join(d.launches(), id)}
	if err := os.MkdirAll(l.attempts(), DirMode); err != nil {
		return Launch{}, fmt.Errorf("cannot make the folder %q: %w", l.attempts(), plain.Error(err))
	}
	if n > 0 {
		_, err = l.NewAttempt(n)
		return l, err
	}
	return l, nil
}

// Launches lists the launches of a name, oldest first; "" lists all.
func (d Dir) Launches(name string) ([]Launch, error) {
	entries, err := os.ReadDir(d.launches())
	if err != nil {
		return nil, fmt.Errorf("cannot list the folder %q: %w", d.launches(), plain.Error(err))
	}
	var all []Launch
	for _, e := range entries { // sorted by name, so by time
		if _, of, ok := splitID(e.Name()); ok && e.IsDir() && (name == "" || name == of) {
			all = append(all, Launch{ID: e.Name(), Path: filepath.Join(d.launches(), e.Name())})
		}
	}
	return all, nil
}

// splitID takes an ID apart; ok is false where NewLaunch cannot have made it.
func splitID(id string) (at time.Time, name string, ok bool) {
	if len(id) < len(stampForm)+1+1+suffixLen {
		return time.Time{}, "", false
	}
	at, err := time.Parse(stampForm, id[:len(stampForm)])
	name = id[len(stampForm)+1 : len(id)-suffixLen]
	return at, name, err == nil && id[len(stampForm)] == '-' && id[len(id)-suffixLen] == '-' && isName(name)
}

// Name is the name that the launch was given.
func (l Launch) Name() string { _, name, _ := splitID(l.ID); return name }

// Began is when the launch was made, to the millisecond.
func (l Launch) Began() time.Time { at, _, _ := splitID(l.ID); return at }

// Record is the path of launch.json.
func (l Launch) Record() string { return filepath.Join(l.Path, "launch.json") }

// Journal is the path of the journal.
func (l Launch) Journal() string { return filepath.Join(l.Path, "journal.jsonl") }

// Current is the link to the newest attempt.
func (l Launch) Current() string { return filepath.Join(l.Path, "current") }

func (l Launch) attempts() string { return filepath.Join(l.Path, "attempts") }

// NewAttempt makes the folder of attempt n and points Current at it. It may be
// asked again, and makes what a death in between has left out.
func (l Launch) NewAttempt(n int) (Attempt, error) {
	a := l.Attempt(n)
	if n < 1 {
		return Attempt{}, fmt.Errorf("cannot make attempt %d: attempts count from 1", n)
	}
	for _, folder := range []string{a.Path, a.Evidence()} {
		if err := os.Mkdir(folder, DirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return Attempt{}, fmt.Errorf("cannot make the folder %q: %w", folder, plain.Error(err))
		}
	}
	target := filepath.Join("attempts", strconv.Itoa(n))
	if err := renameio.Symlink(target, l.Current()); err != nil {
		return Attempt{}, fmt.Errorf("cannot point %q at attempt %d: %w", l.Current(), n, err)
	}
	return a, syncDir(l.attempts())
}

// Attempt names the paths of attempt n, whether it exists or not.
func (l Launch) Attempt(n int) Attempt {
	return Attempt{N: n, Path: filepath.Join(l.attempts(), strconv.Itoa(n))}
}

// Attempts lists the attempts that exist, in order.
func (l Launch) Attempts() ([]Attempt, error) {
	entries, err := os.ReadDir(l.attempts())
	if err != nil {
		return nil, fmt.Errorf("cannot list the folder %q: %w", l.attempts(), plain.Error(err))
	}
	var all []Attempt
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 && e.IsDir() && strconv.Itoa(n) == e.Name() {
			all = append(all, l.Attempt(n))
		}
	}
	slices.SortFunc(all, func(a, b Attempt) int { return a.N - b.N })
	return all, nil
}

// Log is the path of the server's raw output.
func (a Attempt) Log() string { return filepath.Join(a.Path, "server.log") }

// Events is the path of the attempt's events.
func (a Attempt) Events() string { return filepath.Join(a.Path, "events.jsonl") }

// Processes is the path of the records of all processes of the attempt.
func (a Attempt) Processes() string { return filepath.Join(a.Path, "processes.jsonl") }

// GPUs is the path of what the driver said of the launch's GPUs.
func (a Attempt) GPUs() string { return filepath.Join(a.Path, "gpu.jsonl") }

// Result is the path of how the attempt went.
func (a Attempt) Result() string { return filepath.Join(a.Path, "result.json") }

// Evidence is the folder of what was collected before a kill.
func (a Attempt) Evidence() string { return filepath.Join(a.Path, "evidence") }

// syncDir makes new names in a folder survive a power cut.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot open the folder %q: %w", path, plain.Error(err))
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("cannot write the folder %q to disk: %w", path, plain.Error(err))
	}
	return nil
}
