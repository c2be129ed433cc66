package patch

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bytecode compiled from a source can hide a change of it: a timestamp pyc does
// where size and whole second are the same, an unchecked-hash pyc always. So a
// change takes the target's bytecode away, and a revert brings the old back.

// cacheFile tells whether a name in a cache folder is bytecode of the module,
// for any interpreter and level of optimization.
func cacheFile(stem, name string) bool {
	rest, ok := strings.CutPrefix(name, stem+".")
	tag, isPyc := strings.CutSuffix(rest, ".pyc")
	return ok && isPyc && tag != ""
}

func stem(source string) string {
	base := filepath.Base(source)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// cacheDirs are the folders of the cache paths that an interpreter named.
func cacheDirs(caches []string) []string {
	var dirs []string
	for _, c := range caches {
		dirs = append(dirs, filepath.Dir(c))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// bytecode lists the pycs of a source that lie in the folders, sorted.
func bytecode(source string, dirs []string) ([]string, error) {
	var found []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if cacheFile(stem(source), e.Name()) {
				found = append(found, filepath.Join(dir, e.Name()))
			}
		}
	}
	return found, nil
}

// bytecodeKind names how the interpreter decides that a pyc is still good.
func bytecodeKind(pycs []string) string {
	kind := "none"
	for _, path := range pycs {
		switch k := pycKind(path); {
		case k == "unchecked-hash" || kind == "none":
			kind = k
		case kind != "unchecked-hash" && k != "timestamp":
			kind = k
		}
	}
	return kind
}

func pycKind(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unreadable"
	}
	defer f.Close()
	var head [16]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return "unreadable"
	}
	switch flags := binary.LittleEndian.Uint32(head[4:]); {
	case flags&1 == 0:
		return "timestamp"
	case flags&2 == 0:
		return "unchecked-hash"
	}
	return "checked-hash"
}
