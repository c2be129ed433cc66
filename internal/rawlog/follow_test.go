package rawlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"
)

// Whoever follows gets every byte over any number of rotations, however its
// reads fall between them.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	book, err := Create(path, Rotation{Size: 2000})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Follow(path, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []byte
	written := make(chan struct{})
	for i := range 3000 {
		want = fmt.Appendf(want, "%d\n", i)
	}
	go func() {
		defer close(written)
		for at := 0; at < len(want); {
			n, err := book.WriteAt(want[at:min(at+17, len(want))], int64(at))
			if err != nil {
				t.Error(err)
				return
			}
			at += n
		}
	}()
	var got []byte
	buf := make([]byte, 100)
	for deadline := time.Now().Add(20 * time.Second); len(got) < len(want) && time.Now().Before(deadline); {
		n, err := f.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	<-written
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
	if parts, _ := Parts(path); len(parts) < 5 {
		t.Errorf("it was rotated %d times only", len(parts)-1)
	}
}

// It begins with the last lines, or with everything that is kept.
func TestFollowBegins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	book, err := Create(path, Rotation{Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range []string{"first 1\n", "second2\n", "a\nb\nc"} {
		if _, err := book.WriteAt([]byte(line), int64(8*i)); err != nil {
			t.Fatal(err)
		}
	}
	for lines, want := range map[int]string{-1: "first 1\nsecond2\na\nb\nc", 0: "", 1: "c", 2: "b\nc", 3: "a\nb\nc", 9: "a\nb\nc"} {
		f, err := Follow(path, lines)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || string(got) != want {
			t.Errorf("the last %d lines are %q, %v; want %q", lines, got, err, want)
		}
		_ = f.Close()
	}
}

// A part that was set aside between being listed and being opened is not taken
// for the one that is written since: what is in it would be lost.
func TestFollowIsNotFooledByARotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	book, err := Create(path, Rotation{Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Follow(path, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	listed, err := Parts(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := book.WriteAt([]byte("a line.\n"), int64(8*i)); err != nil {
			t.Fatal(err)
		}
	}
	if file, err := f.open(listed[len(listed)-1]); !errors.Is(err, errTurned) {
		t.Errorf("it opened %v, %v", file, err)
	}
}
