package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A record that a call has returned for survives the writer's kill -9, whole.
func TestKilledWhileWriting(t *testing.T) {
	for round := range 4 {
		path := testPath(t)
		process, out := writer(t, path, "l1", 100_000)
		told := 0
		for told < 20*(round+1) && out.Scan() {
			told, _ = strconv.Atoi(out.Text())
		}
		if err := process.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for out.Scan() { // what it had still said
			told, _ = strconv.Atoi(out.Text())
		}
		_ = process.Wait()

		db := openTest(t, path)
		l, err := db.Launch(t.Context(), "l1")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(l.Attempts); n != told && n != told+1 {
			t.Fatalf("the writer told of %d attempts, %d are there", told, n)
		}
		for i, got := range l.Attempts {
			if diff := cmp.Diff(fullAttempt(i+1), got); diff != "" {
				t.Fatal(diff)
			}
		}
		if db.Aside != "" {
			t.Errorf("a sound database was set aside")
		}
	}
}

func TestSeveralLaunchesWriteAtOnce(t *testing.T) {
	path := testPath(t)
	const writers, attempts = 4, 40
	var wait []func() error
	for w := range writers {
		process, out := writer(t, path, fmt.Sprint("l", w), attempts)
		wait = append(wait, func() error {
			for out.Scan() {
			}
			return process.Wait()
		})
	}
	for _, w := range wait {
		if err := w(); err != nil {
			t.Fatal(err)
		}
	}
	db := openTest(t, path)
	launches, err := db.Launches(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(launches) != writers {
		t.Fatalf("%d launches", len(launches))
	}
	for _, l := range launches {
		if len(l.Attempts) != attempts {
			t.Errorf("launch %s has %d attempts", l.ID, len(l.Attempts))
		}
	}
}

func TestDamagedFilesAreSetAside(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"no database": func(t *testing.T, path string) {
			overwrite(t, path, 0, strings.Repeat("not a database\n", 1000))
		},
		"a page lost": func(t *testing.T, path string) {
			fill(t, path)
			overwrite(t, path, 4096*3, strings.Repeat("\xff", 4096*2))
		},
		"cut short": func(t *testing.T, path string) {
			fill(t, path)
			if err := os.Truncate(path, 4096*5); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := testPath(t)
			damage(t, path)
			damaged, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			db := openTest(t, path)
			if err := db.RecordLaunch(t.Context(), fullLaunch("new")); err != nil {
				t.Error(err)
			}
			if db.Aside == "" {
				t.Fatal("nothing was set aside")
			}
			aside, err := os.ReadFile(db.Aside)
			if err != nil {
				t.Fatal(err)
			}
			if string(aside) != string(damaged) {
				t.Error("the damaged file was changed")
			}
		})
	}
}

func TestADamagedFileInUseIsLeftWhereItIs(t *testing.T) {
	path := testPath(t)
	overwrite(t, path, 0, strings.Repeat("not a database\n", 1000))
	other := lockOf(path)
	if err := other.RLock(); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, err := Open(t.Context(), path)
	if err == nil || !strings.Contains(err.Error(), "set aside once no launch has it open") {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestANewerDatabaseIsRefusedAndLeftAlone(t *testing.T) {
	path := testPath(t)
	fill(t, path)
	execute(t, path, "PRAGMA user_version = 99", "CREATE TABLE from_the_future (a)")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), path)
	if !errors.Is(err, ErrNewer) {
		t.Fatalf("got %v", err)
	}
	want := fmt.Sprintf("cannot open the history in %q: it was written by a newer sglaunch (schema 99, this one knows up to %d)", path, len(steps))
	if err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("it was changed")
	}
}

// Somebody has a transaction open in the sqlite3 shell.
func TestALockedDatabaseHoldsNobodyUp(t *testing.T) {
	path := testPath(t)
	db := openTest(t, path)
	if err := db.RecordLaunch(t.Context(), fullLaunch("l1")); err != nil {
		t.Fatal(err)
	}
	shell, err := sql.Open("sqlite3", dsn(path, "mode", "rw"))
	if err != nil {
		t.Fatal(err)
	}
	defer shell.Close()
	shell.SetMaxOpenConns(1)
	if _, err := shell.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := db.RecordLaunch(ctx, fullLaunch("l2")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > callLimit/2 {
		t.Errorf("it took %v", took)
	}
	if l, err := db.Launch(t.Context(), "l1"); err != nil || l.ID != "l1" {
		t.Errorf("reading: %v", err)
	}
	if _, err := shell.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := db.RecordLaunch(t.Context(), fullLaunch("l2")); err != nil {
		t.Errorf("after the lock: %v", err)
	}
}

// A call on a disk that hangs keeps the turn; the next ones say so and go on.
func TestAHungDiskHoldsNobodyUp(t *testing.T) {
	db := openTest(t, testPath(t))
	hung, release := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := db.write(ctx, "hang", func(context.Context, *sql.Conn) error {
		close(hung)
		<-release
		return nil
	})
	<-hung
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if err := db.RecordLaunch(ctx, fullLaunch("l1")); err == nil || !strings.Contains(err.Error(), "an earlier call") {
		t.Errorf("got %v", err)
	}
	close(release)
	if err := db.RecordLaunch(t.Context(), fullLaunch("l1")); err != nil {
		t.Errorf("after the disk came back: %v", err)
	}
}

func TestPlacesWhereNoDatabaseCanBe(t *testing.T) {
	dir := t.TempDir()
	for name, path := range map[string]string{
		"a folder":         dir,
		"no such folder":   filepath.Join(dir, "none", "history.db"),
		"a name with a ?#": filepath.Join(dir, "none?#", "history.db"),
	} {
		if _, err := Open(t.Context(), path); err == nil {
			t.Errorf("%s: opened", name)
		} else if !strings.HasPrefix(err.Error(), fmt.Sprintf("cannot open the history in %q: ", path)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	odd := filepath.Join(dir, "odd ?#%20 name.db")
	openTest(t, odd)
	if _, err := os.Stat(odd); err != nil {
		t.Error(err)
	}
}

func TestClosedIsRefused(t *testing.T) {
	db, err := Open(t.Context(), testPath(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := db.RecordLaunch(ctx, fullLaunch("l1")); err == nil {
		t.Error("a closed database took a record")
	}
}

// fill makes a database of many pages.
func fill(t testing.TB, path string) {
	t.Helper()
	db, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	for n := 1; n <= 100; n++ {
		if err := db.RecordAttempt(t.Context(), "l1", fullAttempt(n)); err != nil {
			t.Fatal(err)
		}
	}
}

func overwrite(t *testing.T, path string, at int64, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), at); err != nil {
		t.Fatal(err)
	}
}

// execute runs statements as somebody else's tool would.
func execute(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", dsn(path, "mode", "rw"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}
