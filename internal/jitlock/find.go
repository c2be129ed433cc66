package jitlock

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"sglaunch/internal/proc"
)

// Kind is what a lock file means.
type Kind string

// The values of Kind.
const (
	Baton    Kind = "file baton"
	FileLock Kind = "file lock"
)

// Lock is a lock that stands.
type Lock struct {
	Path     string
	Kind     Kind
	Modified time.Time
	Holder   int // pid; 0 = nobody who can be seen has it
	inode    uint64
	device   uint64
}

// String is the lock for people, as of now.
func (l Lock) String() string {
	who := "nobody who can be seen has it"
	if l.Holder != 0 {
		who = "held by " + proc.Who(l.Holder)
	}
	return fmt.Sprintf("%s %s, %s old, %s", l.Kind, l.Path, time.Since(l.Modified).Round(time.Second), who)
}

// Stale reports whether the lock stands though nobody holds it, so that whoever
// waits for it waits for ever.
func (l Lock) Stale() bool { return l.Kind == Baton && l.Holder == 0 }

// Bounds of the search. A cache of kernels has some hundred folders.
const (
	maxEntries = 20000 // of one cache
	maxDepth   = 6     // below it
	maxLocks   = 100
)

// Find looks for batons that stand and file locks that are held, in caches as a
// server uses them. pids are the processes that may hold a baton; nil = all that
// can be looked at. It stops early when ctx ends, and waits for slow storage:
// the caller bounds it.
func Find(ctx context.Context, caches []string, pids []int) []Lock {
	var locks []Lock
	for _, dir := range compacted(caches) {
		locks = append(locks, standing(ctx, dir)...)
	}
	if len(locks) == 0 {
		return nil
	}
	flocks := readFlocks()
	open := holders(ctx, pathsOf(locks, Baton), pids)
	var found []Lock
	for _, l := range locks {
		if l.Kind == Baton {
			l.Holder = open[l.Path]
		} else if l.Holder = flocks.holder(l); l.Holder == 0 {
			continue // an old file, and no lock
		}
		found = append(found, l)
	}
	return found
}

// compacted are the folders that exist, by their real names, each once.
func compacted(dirs []string) []string {
	var real, all []string
	for _, dir := range dirs {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil && filepath.IsAbs(dir) {
			real = append(real, resolved)
		}
	}
	slices.Sort(real)
	for _, dir := range real {
		below := func(up string) bool { return dir == up || strings.HasPrefix(dir, up+"/") }
		if !slices.ContainsFunc(all, below) {
			all = append(all, dir)
		}
	}
	return all
}

// standing lists the lock files of one cache.
func standing(ctx context.Context, dir string) (found []Lock) {
	entries := 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if entries++; entries > maxEntries || len(found) >= maxLocks || ctx.Err() != nil {
			return fs.SkipAll
		}
		if err != nil {
			return nil // it vanished, or nobody may read it
		}
		if e.IsDir() && strings.Count(path[len(dir):], "/") >= maxDepth {
			return fs.SkipDir
		}
		kind, ok := kindOf(e.Name())
		if !ok || !e.Type().IsRegular() {
			return nil
		}
		if l, ok := lockAt(path, kind); ok {
			found = append(found, l)
		}
		return nil
	})
	return found
}

func kindOf(name string) (Kind, bool) {
	switch {
	case name == "lock", strings.HasPrefix(name, "lock_"): // aiter names its batons so
		return Baton, true
	case strings.HasSuffix(name, ".lock"):
		return FileLock, true
	}
	return "", false
}

func lockAt(path string, kind Kind) (Lock, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return Lock{}, false
	}
	l := Lock{Path: path, Kind: kind, Modified: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		l.inode, l.device = st.Ino, uint64(st.Dev)
	}
	return l, true
}

func pathsOf(locks []Lock, kind Kind) map[string]bool {
	paths := map[string]bool{}
	for _, l := range locks {
		if l.Kind == kind {
			paths[l.Path] = true
		}
	}
	return paths
}
