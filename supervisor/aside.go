package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// tuningCache matches the line by which SGLang, from v0.5.12 on, names the
// cache of a rank's autotune: a file, later a folder. Nothing else that a
// server may print is ever renamed.
var tuningCache = regexp.MustCompile(`Running FlashInfer autotune .*?(?:with cache|writing fresh result to): ` +
	`(/[^\x1b\r\n]*/flashinfer/autotune/[^\x1b\r\n]*/rank_[^/\x1b\r\n]+)`)

// asideMark is what the name of a cache gets that was put aside.
const asideMark = ".wrong-answers-"

// startOfLog bounds what is read for the names: autotune is over before ready.
const startOfLog = 64 << 20

// setTuningAside puts the autotune caches aside that an attempt has used, so that
// nobody loads again what gave wrong answers. Nothing is deleted. It is called
// once no process of the attempt lives.
func (h *hands) setTuningAside(attempt int) {
	caches, err := tuningCaches(h.attemptFolder(attempt).Log())
	if err != nil {
		h.note("patch", fmt.Sprintf("cannot put autotune caches aside: %v", err))
		return
	}
	since := begunAt(h.attemptFolder(attempt).Events())
	var moved []string
	for _, path := range caches {
		what, err := setAside(path, asideMark+h.launch.ID, since)
		if err != nil {
			h.note("patch", fmt.Sprintf("cannot put an autotune cache aside: %v", err))
		}
		if what != "" {
			moved = append(moved, what)
		}
	}
	if len(moved) > 0 {
		h.note("patch", fmt.Sprintf("put aside as *%s%s: %s", asideMark, h.launch.ID, strings.Join(moved, ", ")))
	}
}

// setAside puts a cache aside under its name and mark, and says what of it. A
// file is of one rank alone. A folder is a store of entries, which outlives
// launches and may serve others: only entries that were written since the attempt
// began go, and none while another process holds the store's lock.
func setAside(path, mark string, since time.Time) (what string, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !info.IsDir():
		return path, os.Rename(path, path+mark)
	}
	if _, err := os.Lstat(filepath.Join(path, storeLock)); err == nil {
		lock := flock.New(filepath.Join(path, storeLock))
		locked, err := lock.TryLock()
		if err != nil {
			return "", err
		}
		defer lock.Close()
		if !locked {
			return "", fmt.Errorf("another process uses %q", path)
		}
	}
	n, err := moveEntries(path, path+mark, since)
	if n > 0 {
		what = fmt.Sprintf("%s (%d entries)", path, n)
	}
	return what, err
}

// storeLock is in a store while a server uses it.
const storeLock = ".lock"

// moveEntries moves the files of a folder that are not older into another one, each
// to the same place below it.
func moveEntries(from, to string, since time.Time) (n int, err error) {
	err = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || e.Name() == storeLock {
			return err
		}
		info, err := e.Info()
		if err != nil || info.ModTime().Before(since) {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		if err := os.Rename(path, target); err != nil {
			return err
		}
		n++
		return nil
	})
	return n, err
}

// begunAt is when an attempt began, by its events. What they do not tell counts
// as long ago: then every entry goes.
func begunAt(events string) (at time.Time) {
	eachEvent(events, func(e envelope) {
		if e.Event == "attempt_started" {
			at = e.Time
		}
	})
	return at
}

// tuningCaches reads from an attempt's log which caches its ranks have used.
func tuningCaches(log string) ([]string, error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var caches []string
	lines := bufio.NewReaderSize(io.LimitReader(f, startOfLog), 64<<10)
	for {
		line, err := lines.ReadSlice('\n') // of a longer line the pieces are read one by one
		if m := tuningCache.FindSubmatch(line); m != nil {
			if path := filepath.Clean(strings.TrimSpace(string(m[1]))); !slices.Contains(caches, path) {
				caches = append(caches, path)
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			break
		}
	}
	return caches, nil
}
