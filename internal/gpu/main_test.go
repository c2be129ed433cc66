//go:build cgo

package gpu

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sglaunch/internal/rehearsal"
)

// samplerVariable turns the test binary into a sampler.
const samplerVariable = "SGLAUNCH_TEST_SAMPLER"

// boardVariable names the board that the stand-in library answers from.
const boardVariable = "SGLAUNCH_REHEARSAL_NVML"

func TestMain(m *testing.M) {
	if os.Getenv(samplerVariable) != "" {
		if err := ServeSampler(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	libraries.Range(func(_, dir any) bool {
		os.RemoveAll(dir.(library).dir)
		return true
	})
	os.Exit(code)
}

// library is a stand-in libnvidia-ml.so.1 that was built.
type library struct {
	dir string
	err error
}

// libraries keeps what was built, by what it lacks.
var libraries sync.Map

// standIn returns the path of a stand-in library without the given functions.
func standIn(t *testing.T, without ...string) string {
	t.Helper()
	key := fmt.Sprint(without)
	built, ok := libraries.Load(key)
	if !ok {
		dir, err := os.MkdirTemp("", "sglaunch-nvml-")
		if err == nil {
			_, err = rehearsal.BuildNVML(dir, without...)
		}
		built = library{dir, err}
		libraries.Store(key, built)
	}
	if err := built.(library).err; err != nil {
		t.Fatal(err)
	}
	return filepath.Join(built.(library).dir, "libnvidia-ml.so.1")
}

// stage is a sampler of the test binary on a stand-in library, and the board
// that the library answers from.
type stage struct {
	*testing.T
	*Client
	path  string
	board rehearsal.Board
	seen  []Event
}

// newStage starts a client whose sampler sees n idle GPUs. adjust may change
// the options.
func newStage(t *testing.T, n int, adjust func(*Options), without ...string) *stage {
	t.Helper()
	s := prepare(t, n)
	o := Options{
		Argv:     []string{os.Args[0]},
		Env:      s.env(standIn(t, without...)),
		Interval: 20 * time.Millisecond,
		Hang:     5 * time.Second,
		Grace:    5 * time.Second,
	}
	if adjust != nil {
		adjust(&o)
	}
	s.Client = Start(o)
	t.Cleanup(func() { s.Client.Close() })
	return s
}

// prepare writes the board, without starting anything.
func prepare(t *testing.T, n int) *stage {
	s := &stage{T: t, path: filepath.Join(t.TempDir(), "board")}
	s.board.GPUs = rehearsal.Machine(n)
	s.write()
	return s
}

func (s *stage) env(library string) []string {
	return append(os.Environ(), samplerVariable+"=1", libraryVariable+"="+library, boardVariable+"="+s.path)
}

func (s *stage) write() {
	s.Helper()
	if err := s.board.Write(s.path); err != nil {
		s.Fatal(err)
	}
}

// await returns the first event that fits, and keeps those before it in seen.
func await[E Event](s *stage, fits func(E) bool) E {
	s.Helper()
	over := time.After(limit)
	for {
		select {
		case e, open := <-s.Events():
			if !open {
				s.Fatalf("the events ended while waiting for %T; seen: %+v", *new(E), s.seen)
			}
			s.seen = append(s.seen, e)
			if e, ok := e.(E); ok && (fits == nil || fits(e)) {
				return e
			}
		case <-over:
			s.Fatalf("no fitting %T within %v; seen: %+v", *new(E), limit, s.seen[max(0, len(s.seen)-5):])
		}
	}
}

func (s *stage) snapshot() Sample {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	sample, err := s.Snapshot(ctx)
	if err != nil {
		s.Fatal(err)
	}
	return sample
}
