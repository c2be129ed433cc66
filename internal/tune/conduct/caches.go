package conduct

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/tune"
)

// Bounds of a look at the caches, which lies between two launches.
const (
	cachesLimit = 10 * time.Second
	cacheBytes  = 256 << 20 // of one folder, to be read for its digest
	cacheFiles  = 20_000
	tacticBytes = 4 << 20 // of one file of tactics
	tacticFiles = 500
)

// lookAtCaches says what lies in the folders of compiled kernels and tuning
// results that the launch's server uses. A disk that hangs delays nobody for long.
func (at *attempt) lookAtCaches() *tune.Caches {
	env, err := at.config.Environ(os.Environ())
	if err != nil {
		return &tune.Caches{Problem: err.Error()}
	}
	command := sglangcmd.Parse(at.config.Server.Command, env, at.folder)
	folders := history.JITCaches(func(name string) string { v, _ := command.Getenv(name); return v })
	ctx, cancel := context.WithTimeout(context.Background(), cachesLimit)
	defer cancel()
	seen := make(chan *tune.Caches, 1)
	go func() { seen <- cachesIn(ctx, folders) }()
	select {
	case c := <-seen:
		return c
	case <-ctx.Done():
		return &tune.Caches{Problem: fmt.Sprintf("the caches could not be looked at within %s", cachesLimit)}
	}
}

func cachesIn(ctx context.Context, folders []string) *tune.Caches {
	c := &tune.Caches{Tactics: map[string]string{}}
	for _, folder := range folders {
		if _, err := os.Stat(folder); err != nil {
			continue // it is not there yet
		}
		addTactics(ctx, filepath.Join(folder, "flashinfer", "autotune"), c.Tactics)
		c.Folders = append(c.Folders, cacheFolder(ctx, folder))
	}
	return c
}

// cacheFolder takes the digest of a folder: of the names of its files, in their
// order, and of what they hold. Times do not count, and locks are no content.
func cacheFolder(ctx context.Context, folder string) tune.CacheFolder {
	c := tune.CacheFolder{Path: folder}
	var names []string
	eachFile(ctx, folder, func(path string, size int64) bool {
		names = append(names, path)
		c.Files, c.Bytes = c.Files+1, c.Bytes+size
		return true
	})
	if c.Files > cacheFiles || c.Bytes > cacheBytes {
		c.Text = fmt.Sprintf("too large to hash: %d files, %d bytes", c.Files, c.Bytes)
		return c
	}
	all := sha256.New()
	for _, path := range names {
		rel, _ := filepath.Rel(folder, path) // it lies below
		f, err := os.Open(path)
		if err != nil {
			continue // gone since, or nobody's to read
		}
		own := sha256.New()
		_, _ = io.Copy(own, io.LimitReader(f, cacheBytes)) // what cannot be read has no content
		_ = f.Close()
		fmt.Fprintf(all, "%s\x00%x\n", rel, own.Sum(nil))
		if ctx.Err() != nil {
			c.Text = fmt.Sprintf("not hashed in time: %d files, %d bytes", c.Files, c.Bytes)
			return c
		}
	}
	c.Digest = hex.EncodeToString(all.Sum(nil)[:8])
	return c
}

// addTactics takes the digest of each result of the autotuner below a folder.
// The order in which a file tells its tactics does not count.
func addTactics(ctx context.Context, folder string, tactics map[string]string) {
	eachFile(ctx, folder, func(path string, size int64) bool {
		if filepath.Ext(path) != ".json" || size > tacticBytes {
			return true
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return true
		}
		var told any
		if json.Unmarshal(text, &told) == nil {
			if sorted, err := json.Marshal(told); err == nil {
				text = sorted
			}
		}
		rel, _ := filepath.Rel(folder, path) // it lies below
		tactics[rel] = shortSum(string(text))
		return len(tactics) < tacticFiles
	})
}

// eachFile calls do with the files below a folder in the order of their names,
// until it returns false.
func eachFile(ctx context.Context, folder string, do func(path string, size int64) bool) {
	_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return fs.SkipAll
		}
		if err != nil || !e.Type().IsRegular() || strings.HasSuffix(e.Name(), ".lock") {
			return nil // what cannot be read no server can use either
		}
		info, err := e.Info()
		if err == nil && !do(path, info.Size()) {
			return fs.SkipAll
		}
		return nil
	})
}
