package patch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A folder shows by its time that a name in it was changed. Ours come and go, so
// the time of before comes back, unless somebody else changed a name as well.

// folder is what a folder was before we changed a name in it.
type folder struct {
	Path    string `json:"path"`
	ModTime int64  `json:"mtime"`
	Names   string `json:"names"` // hash of the names that are not ours
	Absent  bool   `json:"absent,omitempty"`
}

// foldersOf looks at the folders in which a change of the entry touches names.
func foldersOf(e *entry) ([]folder, error) {
	var all []folder
	for _, dir := range append([]string{filepath.Dir(e.Path)}, e.Caches...) {
		f, err := readFolder(dir, stem(e.Path))
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func readFolder(dir, stem string) (folder, error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return folder{Path: dir, Absent: true}, nil
	}
	if err != nil {
		return folder{}, err
	}
	others, err := names(dir, func(name string) bool {
		return strings.HasPrefix(name, tempPrefix) || cacheFile(stem, name)
	})
	if err != nil {
		return folder{}, err
	}
	return folder{Path: dir, ModTime: info.ModTime().UnixNano(), Names: Hash([]byte(strings.Join(others, "\x00")))}, nil
}

// restoreFolders gives the folders the times they had before an apply.
func (s *session) restoreFolders(entries []*entry) error {
	for _, e := range entries {
		for _, f := range e.Folders {
			if f.Absent {
				continue
			}
			if err := s.setTime(f.Path, f.ModTime); err != nil {
				return err
			}
		}
	}
	return nil
}

// setTime sets a folder's time where it is another: only its owner may.
func (s *session) setTime(dir string, mtime int64) error {
	if info, err := os.Lstat(dir); err == nil && info.ModTime().UnixNano() == mtime {
		return nil
	}
	return s.disk.SetTime(dir, mtime)
}

// foundTimes notes the folders' times before a revert touches them.
func foundTimes(due []*entry) map[string]int64 {
	times := map[string]int64{}
	for _, e := range due {
		for _, f := range e.Folders {
			if info, err := os.Lstat(f.Path); err == nil {
				times[f.Path] = info.ModTime().UnixNano()
			}
		}
	}
	return times
}

// settleFolders gives each folder the time from before the apply if its names
// are those of then, else the time that it was found with: what somebody else
// added or removed in between shows as it would have without us. A bytecode
// folder that came with the patched file and is empty again goes.
func (s *session) settleFolders(due []*entry, found map[string]int64) error {
	for _, e := range due {
		for _, was := range slices.Backward(e.Folders) { // caches first: one that goes touches its parent
			if err := s.settleFolder(e, was, found); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) settleFolder(e *entry, was folder, found map[string]int64) error {
	now, err := readFolder(was.Path, stem(e.Path))
	switch {
	case err != nil:
		return err
	case now.Absent:
		return nil
	case was.Absent:
		if left, err := os.ReadDir(was.Path); err == nil && len(left) == 0 {
			return removeIfThere(s.disk, was.Path)
		}
		return nil
	case now.Names == was.Names:
		return s.setTime(was.Path, was.ModTime)
	}
	if time, ok := found[was.Path]; ok {
		return s.setTime(was.Path, time)
	}
	return nil
}

// names lists a folder without the entries that are ours to remove; sorted. A
// folder that is not there has none.
func names(dir string, ours func(name string) bool) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if !ours(e.Name()) {
			all = append(all, e.Name())
		}
	}
	return all, nil
}
