package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// wake names the mutant that is awake in a run of the tests.
const wake = "SGLAUNCH_MUTANT"

// awakeSource is what the sleeping mutants call, below the name of the package.
const awakeSource = `
import (
	"os"
	"strconv"
)

var mutantAwake, _ = strconv.Atoi(os.Getenv("` + wake + `"))

func mutant(n int) bool { return n == mutantAwake }

func mutantAnd(n int, a bool, b func() bool) bool {
	if mutant(n) {
		return a || b()
	}
	return a && b()
}

func mutantOr(n int, a bool, b func() bool) bool {
	if mutant(n) {
		return a && b()
	}
	return a || b()
}
`

// mutant is one broken rule.
type mutant struct {
	number  int
	file    string
	in      string // the function
	was, is string
}

// String names a mutant by what it breaks, not by its line: the name outlives
// changes elsewhere in the file.
func (m mutant) String() string {
	return fmt.Sprintf("%s %s: %s -> %s", filepath.Base(m.file), m.in, flat(m.was), flat(m.is))
}

func flat(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 110 {
		s = s[:107] + "..."
	}
	return or(s, "(nothing)")
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// sleeper holds every mutant of the room, asleep, in rewritten files.
type sleeper struct {
	mutants []mutant
	room    room
	files   map[string][]byte
}

// edit is a piece of text put in at a place, or in place of an operator. Edits
// nest: what opens at one place opens the longest span first, what closes
// there closes the shortest first.
type edit struct {
	at, drop int // offset, and bytes that go
	closing  bool
	span     int
	seq      int
	text     string
}

func order(a, b edit) int {
	switch {
	case a.at != b.at:
		return a.at - b.at
	case a.closing != b.closing:
		if a.closing {
			return -1
		}
		return 1
	case a.closing && a.span != b.span:
		return a.span - b.span
	case a.closing:
		return b.seq - a.seq
	case a.span != b.span:
		return b.span - a.span
	}
	return a.seq - b.seq
}

func apply(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, order)
	var out []byte
	from := 0
	for _, e := range edits {
		out = append(append(out, text[from:e.at]...), e.text...)
		from = e.at + e.drop
	}
	return append(out, text[from:]...)
}

// build compiles the tests of the room with all mutants in it.
func (s *sleeper) build(dir string) (binary string, err error) {
	replace := map[string]string{}
	put := func(name string, source []byte) error {
		path, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		replace[path] = filepath.Join(dir, filepath.Base(name))
		return os.WriteFile(replace[path], source, 0o600)
	}
	for name, source := range s.files {
		if err := put(name, source); err != nil {
			return "", err
		}
	}
	if err := put(filepath.Join(s.room.dir, "mutants_asleep.go"), []byte("package "+filepath.Base(s.room.dir)+"\n"+awakeSource)); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "room.test")
	out, err := exec.Command("go", "test", "-c", "-o", binary, "-overlay", list, "./"+s.room.dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build the mutants: %w\n%s", err, out)
	}
	return binary, nil
}
