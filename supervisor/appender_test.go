package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the disk refuses is told once, and once more when it takes lines again,
// however often it refuses and whichever file is written.
func TestAppenderTellsOnce(t *testing.T) {
	dir := t.TempDir()
	var told []string
	a := &appender{what: "events", tell: func(text string) { told = append(told, text) }}
	write := func(path, line string) {
		t.Helper()
		a.to(path)
		if n, err := a.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("%d bytes taken, %v", n, err)
		}
	}
	later := filepath.Join(dir, "later", "events")
	write(filepath.Join(dir, "events"), "1\n")
	write("/dev/full", "2\n")
	write("/dev/full", "3\n")
	write(later, "4\n")
	if err := os.Mkdir(filepath.Dir(later), 0o700); err != nil {
		t.Fatal(err)
	}
	write(later, "5\n")
	write(later, "6\n")
	a.close()
	if len(told) != 2 || !strings.Contains(told[0], "no space left") || told[1] != "the events are written again; 3 are missing" {
		t.Errorf("told %q", told)
	}
	content, err := os.ReadFile(later)
	if diff := cmp.Diff("5\n6\n", string(content)); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// A line after one that the disk took in part is a line of its own.
func TestAppenderEndsATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	a := &appender{}
	a.to(path)
	a.torn = true
	_, _ = a.Write([]byte("2\n"))
	_, _ = a.Write([]byte("3\n"))
	a.close()
	if content, err := os.ReadFile(path); string(content) != "\n2\n3\n" || err != nil {
		t.Errorf("%q, %v", content, err)
	}
}
