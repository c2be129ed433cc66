package history

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The limit of pages gives the same answer as a full disk, and needs no disk.
func TestAFullDatabaseIsAnErrorNotAnEnd(t *testing.T) {
	db := openTest(t, testPath(t))
	limit := func(pages string) {
		t.Helper()
		_, err := read(t.Context(), db, "limit the size", func(ctx context.Context, c *sql.Conn) (struct{}, error) {
			_, err := c.ExecContext(ctx, "PRAGMA max_page_count = "+pages)
			return struct{}{}, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit("20")
	fillUp(t, db)
	limit("1000000")
	if err := db.RecordLaunch(t.Context(), fullLaunch("l2")); err != nil {
		t.Errorf("after space came back: %v", err)
	}
}

func TestAFullDiskIsAnErrorNotAnEnd(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Logf("the test above must do: no small disk can be mounted here: %v", err)
		return
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	db, err := Open(t.Context(), filepath.Join(dir, "history.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	fillUp(t, db)
	if _, err := Open(t.Context(), filepath.Join(dir, "another.db")); err == nil || isCorrupt(err) {
		t.Errorf("a new database on a full disk: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := db.RecordLaunch(t.Context(), fullLaunch("l2")); err != nil {
		t.Errorf("after space came back: %v", err)
	}
}

// fillUp writes until it is refused, and reads what it wrote.
func fillUp(t *testing.T, db *DB) {
	t.Helper()
	var told int
	var refused error
	for n := 1; n < 5000 && refused == nil; n++ {
		if refused = db.RecordAttempt(t.Context(), "l1", fullAttempt(n)); refused == nil {
			told = n
		}
	}
	if refused == nil || !strings.Contains(refused.Error(), "full") {
		t.Fatalf("got %v", refused)
	}
	if told == 0 {
		return
	}
	if l, err := db.Launch(t.Context(), "l1"); err != nil || len(l.Attempts) != told {
		t.Errorf("%d attempts were recorded, %d are there: %v", told, len(l.Attempts), err)
	}
}
