package supervisor

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"sglaunch/internal/history"
)

// differs says what answers may suffer from that is not as it was when a launch
// of this name served last. Another model or another machine is another
// server: with those nothing can be compared.
func (m *memory) differs(ctx context.Context, good history.Good) (all []string) {
	was, is := good.Key, m.asked
	if was.Machine != is.Machine || was.Model != is.Model {
		return nil
	}
	if was.Flags != is.Flags {
		all = append(all, "set of flags or variables")
	}
	if was.Version != is.Version && was.Version != "" && is.Version != "" {
		all = append(all, fmt.Sprintf("SGLang, %s after %s", is.Version, was.Version))
	}
	if at := m.look.tuned(ctx); at.After(good.Ready) {
		all = append(all, "autotune cache, written at "+at.Local().Format(time.DateTime))
	}
	return all
}

// tuned is when an autotune cache of the server was written last; zero where
// there is none, or where the disk does not say so in time. A launch has written
// its own before it is ready.
func (l surroundings) tuned(ctx context.Context) time.Time {
	command := l.setup.parsed()
	if !command.SGLang() {
		return time.Time{}
	}
	getenv := func(name string) string { v, _ := command.Getenv(name); return v }
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return <-within(ctx, func() (newest time.Time) {
		for _, cache := range history.JITCaches(getenv) {
			if at := newestTuning(ctx, filepath.Join(cache, "flashinfer", "autotune")); at.After(newest) {
				newest = at
			}
		}
		return newest
	})
}

// newestTuning looks through the autotune caches below a folder: a file for each
// rank, or a folder of entries. Those that were put aside are nobody's.
func newestTuning(ctx context.Context, folder string) (newest time.Time) {
	_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			return nil // what cannot be read no server can use either
		case strings.Contains(e.Name(), asideMark) && e.IsDir():
			return fs.SkipDir
		case e.IsDir() || strings.Contains(e.Name(), asideMark) || filepath.Ext(path) != ".json":
			return nil
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	return newest
}
