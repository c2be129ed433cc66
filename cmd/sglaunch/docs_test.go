package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// docs/commands.md is what the program says. UPDATE_DOCS=1 writes it.
func TestReference(t *testing.T) {
	var b bytes.Buffer
	if err := writeReference(&b, newRoot()); err != nil {
		t.Fatal(err)
	}
	const path = "../../docs/commands.md"
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("docs/commands.md is not what the program says (UPDATE_DOCS=1 go test ./cmd/sglaunch -run TestReference):\n%s", diff)
	}
}

// Every command and flag says what it does, in one line that fits a terminal.
func TestHelpReadsWell(t *testing.T) {
	root := newRoot()
	eachCommand(root, func(c *cobra.Command) {
		name := c.CommandPath()
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || len(c.Short) > 80 {
			t.Errorf("%s is described as %q", name, c.Short)
		}
		for line := range strings.Lines(c.Long) {
			if len([]rune(line)) > 90 && !strings.HasPrefix(line, "  ") { // a list may be wide
				t.Errorf("%s has a line of %d characters: %q", name, len([]rune(line)), line)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" && !f.Hidden {
				t.Errorf("%s --%s is not described", name, f.Name)
			}
		})
	})
	var help bytes.Buffer
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	run.SetOut(&help)
	if err := run.Help(); err != nil {
		t.Fatal(err)
	}
	own, keys, ok := strings.Cut(help.String(), keysTitle)
	if !ok || !strings.Contains(own, "--detach") || strings.Contains(own, "--relaunch.") || !strings.Contains(keys, "--relaunch.attempts") || strings.Contains(keys, "--detach") {
		t.Errorf("the keys of launch.toml are not apart:\n%s", help.String())
	}
}

// There is a man page for every command, the same each time.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if err := writeManPages(dir, newRoot()); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "sglaunch-run.1"))
	if err != nil || !bytes.Contains(page, []byte(`.TH "SGLAUNCH-RUN" "1"`)) || !bytes.Contains(page, []byte("detach")) {
		t.Errorf("%v\n%s", err, page)
	}
	eachCommand(newRoot(), func(c *cobra.Command) {
		if _, err := os.Stat(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")); err != nil {
			t.Error(err)
		}
	})
}

// Where a package comment is a map of its files, it has each of them, and no other.
func TestMapsOfRoomsAreWhole(t *testing.T) {
	file := regexp.MustCompile(`\w+\.go\b`)
	for _, room := range []string{
		"supervisor", "supervisor/machine", "internal/shim", "internal/proc", "internal/stacks", "internal/tune/conduct",
	} {
		folder := filepath.Join("../..", room)
		doc, err := os.ReadFile(filepath.Join(folder, "doc.go"))
		if err != nil {
			t.Fatal(err)
		}
		named := file.FindAllString(string(doc), -1)
		paths, _ := filepath.Glob(filepath.Join(folder, "*.go"))
		var there []string
		for _, path := range paths {
			if name := filepath.Base(path); name != "doc.go" && !strings.HasSuffix(name, "_test.go") {
				there = append(there, name)
			}
		}
		slices.Sort(named)
		if diff := cmp.Diff(there, named); diff != "" {
			t.Errorf("%s/doc.go (-there +named):\n%s", room, diff)
		}
	}
}
