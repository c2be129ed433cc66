package rawlog

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Whatever the rule and the sizes of the writes: the parts in order are the
// output, every offset reads what was written there, and no part but the newest
// lacks the end of its line, as long as lines are short.
func TestNoByteIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "rawlog")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "server.log")
		rule := Rotation{Size: rapid.Int64Range(1, 400).Draw(t, "size"), Keep: rapid.IntRange(0, 4).Draw(t, "keep")}
		book, err := Create(path, rule)
		if err != nil {
			t.Fatal(err)
		}
		var all []byte
		for i := range rapid.IntRange(1, 60).Draw(t, "writes") {
			p := []byte(rapid.StringMatching(`[a-z \n]{1,50}`).Draw(t, "text") + fmt.Sprintf("%d\n", i))
			if n, err := book.WriteAt(p, int64(len(all))); n != len(p) || err != nil {
				t.Fatalf("wrote %d of %d: %v", n, len(p), err)
			}
			all = append(all, p...)
		}
		begin := book.Begin()
		if rule.Keep == 0 && begin != 0 {
			t.Fatalf("all parts are kept, and yet it begins at %d", begin)
		}
		if got := reread(t, book, begin, int64(len(all))); !bytes.Equal(got, all[begin:]) {
			t.Fatalf("by offset:\n%q\nwant\n%q", got, all[begin:])
		}
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got, err := io.ReadAll(r); err != nil || r.From != begin || !bytes.Equal(got, all[begin:]) {
			t.Fatalf("from disk, at %d: %v\n%q\nwant, at %d\n%q", r.From, err, got, begin, all[begin:])
		}
		parts, err := Parts(path)
		if err != nil || rule.Keep > 0 && len(parts) > rule.Keep+1 {
			t.Fatalf("%d parts, %v", len(parts), err)
		}
		for _, p := range parts[:len(parts)-1] {
			if data, err := os.ReadFile(p.Path); err != nil || !bytes.HasSuffix(data, []byte("\n")) || !bytes.HasPrefix(all[p.From:], data) {
				t.Fatalf("part %s: %v %q", p.Path, err, data)
			}
		}
	})
}

// reread reads everything by offset, in odd pieces.
func reread(t *rapid.T, book *Book, from, to int64) (got []byte) {
	buf := make([]byte, 37)
	for from < to {
		n, err := book.ReadAt(buf, from)
		if n == 0 || err != nil {
			t.Fatalf("at %d of %d: %d bytes, %v", from, to, n, err)
		}
		got = append(got, buf[:n]...)
		from += int64(n)
	}
	return got
}

// A part grows old by its first byte, not while nothing is written.
func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "server.log")
		book, err := Create(path, Rotation{Age: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		at := int64(0)
		write := func(text string) {
			if _, err := book.WriteAt([]byte(text), at); err != nil {
				t.Fatal(err)
			}
			at += int64(len(text))
		}
		time.Sleep(2 * time.Hour)
		write("first\n")
		time.Sleep(59 * time.Minute)
		write("second\n")
		time.Sleep(time.Minute)
		write("third\nand a ha")
		write("lf\n")
		parts, err := Parts(path)
		if err != nil || len(parts) != 2 {
			t.Fatalf("%v %v", parts, err)
		}
		for i, want := range []string{"first\nsecond\nthird\n", "and a half\n"} {
			if got, _ := os.ReadFile(parts[i].Path); string(got) != want {
				t.Errorf("part %d is %q, want %q", i, got, want)
			}
		}
	})
}

// What has no end of a line is cut in the end: a disk is not filled by a bar.
func TestLongLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	book, err := Create(path, Rotation{Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	bar := []byte(strings.Repeat("\r 41%|####", 10_000))
	at := int64(0)
	for at < 5<<20 {
		if _, err := book.WriteAt(bar, at); err != nil {
			t.Fatal(err)
		}
		at += int64(len(bar))
	}
	if parts, err := Parts(path); err != nil || len(parts) < 3 {
		t.Errorf("%v %v", parts, err)
	}
}

// A folder that takes no other file costs the rotation, not the output.
func TestRotationRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "server.log")
	book, err := Create(path, Rotation{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil { // whoever moves it away: there is nothing to rename
		t.Fatal(err)
	}
	for i := range int64(3) {
		if n, err := book.WriteAt([]byte("0123456789\n"), 11*i); n != 11 || err != nil {
			t.Fatalf("%d %v", n, err)
		}
	}
	buf := make([]byte, 100)
	if n, err := book.ReadAt(buf, 0); n != 33 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := Create(filepath.Join(dir, "none", "x"), Rotation{}); err == nil {
		t.Error("a log in a folder that does not exist")
	}
}

// Files that only look like parts are left alone.
func TestPartsOfOthers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"server.log", "server.log.1", "server.log.gz", "server.log.00000000000001x", "other.log.000000000000000", "server.log.000000000000000"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("0123"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parts, err := Parts(filepath.Join(dir, "server.log"))
	if err != nil || len(parts) != 2 || parts[1].From != 4 {
		t.Errorf("%v %v", parts, err)
	}
}
