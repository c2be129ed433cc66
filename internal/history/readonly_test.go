package history

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The morning after a disk filled up, or was remounted read-only for its
// errors, people want to read what happened.
func TestReadingWhereNothingCanBeWritten(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"full": func(t *testing.T, dir string) {
			err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 16<<20), 0o600)
			if !errors.Is(err, unix.ENOSPC) {
				t.Fatal(err)
			}
		},
		"read-only": func(t *testing.T, dir string) {
			if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
				t.Logf("no disk of our own can be spoilt here: %v", err)
				return
			}
			defer func() {
				if err := unix.Unmount(dir, 0); err != nil {
					t.Error(err)
				}
			}()
			path := filepath.Join(dir, "history.db")
			fill(t, path)
			spoil(t, dir)
			if _, err := Open(t.Context(), path); err == nil || isCorrupt(err) {
				t.Errorf("Open: %v", err)
			}
			db, err := OpenToRead(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if l, err := db.Launch(t.Context(), "l1"); err != nil || len(l.Attempts) != 100 {
				t.Errorf("%d attempts: %v", len(l.Attempts), err)
			}
			if err := db.RecordLaunch(t.Context(), fullLaunch("l2")); err == nil {
				t.Error("a record was taken")
			}
		})
	}
}

// Whoever may not write the folder at all still reads the file as it is.
func TestReadingAsItIs(t *testing.T) {
	path := testPath(t)
	fill(t, path)
	db, err := openAsItIs(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if l, err := db.Launch(t.Context(), "l1"); err != nil || len(l.Attempts) != 100 {
		t.Errorf("%d attempts: %v", len(l.Attempts), err)
	}
	execute(t, path, "PRAGMA user_version = 99")
	if _, err := openAsItIs(t.Context(), path); err == nil || !strings.Contains(err.Error(), "schema 99") {
		t.Errorf("a newer schema: %v", err)
	}
}

func TestOpenToReadRefusesWhatOpenRefuses(t *testing.T) {
	path := testPath(t)
	fill(t, path)
	execute(t, path, "PRAGMA user_version = 99")
	if _, err := OpenToRead(t.Context(), path); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer database: %v", err)
	}
	if _, err := OpenToRead(t.Context(), filepath.Join(t.TempDir(), "none", "history.db")); err == nil {
		t.Error("opened what is not there")
	}
}
