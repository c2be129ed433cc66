package config

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sglaunch/patch"
	"sglaunch/phases"
)

var update = flag.Bool("update", false, "write launch.toml.example anew")

const exampleFile = "../../launch.toml.example"

// The file in the repository is what the structs say, byte for byte: each key
// of this version with its default, and no other.
func TestExampleFileMatchesTheStructs(t *testing.T) {
	want := Example()
	if *update {
		if err := os.WriteFile(exampleFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("launch.toml.example differs (go test ./internal/config -update writes it):\n%s", diff)
	}
}

// The example would be worth little if it were made and read by one mistake:
// this test reads it with Load alone and holds the list of keys against it.
func TestExampleLoadsToTheDefaults(t *testing.T) {
	got, err := Load(Options{Path: exampleFile, CommandOptional: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got, equal); diff != "" {
		t.Errorf("the example differs from the defaults:\n%s", diff)
	}
	content, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	where := locate(content)
	c := Default()
	for _, f := range keys(&c) {
		_, present := where[f.Key]
		if want := f.rows() == nil && f.Value.Kind() != reflect.Slice || present; present != want {
			t.Errorf("%s: in the example %v, want %v", f.Key, present, want)
		}
		delete(where, f.Key)
		for _, m := range f.members() {
			delete(where, m.Key)
		}
	}
	for key := range where {
		if strings.Contains(key, ".") {
			t.Errorf("the example holds %s, which is no key", key)
		}
	}
}

// The commented [[patch]] is read too, without its "# ", each key by itself.
func TestExamplePatchKeysAreReal(t *testing.T) {
	_, block, _ := strings.Cut(Example(), "# [[patch]]\n")
	block, _, _ = strings.Cut(block, "\n\n")
	seen := map[string]bool{}
	for line := range strings.Lines(block) {
		line = strings.TrimPrefix(line, "# ")
		name, _, _ := strings.Cut(line, " ")
		seen[name] = true
		path := write(t, "[[patch]]\n"+line)
		_, err := Load(Options{Path: path, CommandOptional: true})
		if err != nil && regexp.MustCompile(`no such key|it takes`).MatchString(err.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, f := range tomlFields(reflect.TypeFor[patch.Patch]()) {
		if name := tomlName(f); !seen[name] {
			t.Errorf("the example does not show patch.%s", name)
		}
	}
}

// The commented [[fallback]] is one that a person may take over as it stands.
func TestExampleFallbackLoads(t *testing.T) {
	_, block, _ := strings.Cut(Example(), "# [[fallback]]\n")
	block, _, _ = strings.Cut(block, "\n\n")
	var text strings.Builder
	text.WriteString("[[fallback]]\n")
	for line := range strings.Lines(block) {
		text.WriteString(strings.TrimPrefix(line, "# "))
	}
	c, err := Load(Options{Path: write(t, text.String()), CommandOptional: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Fallbacks) != 1 {
		t.Fatalf("it was read as %+v", c.Fallbacks)
	}
	f := c.Fallbacks[0]
	if _, known := phases.LookupCause(f.Cause); !known {
		t.Errorf("it is for the cause %q, which is none", f.Cause)
	}
	if _, err := phases.ParsePhase(f.Phase); err != nil || len(f.Set) == 0 || len(f.Env) == 0 || f.Min == 0 || f.Max == 0 {
		t.Errorf("it was read as %+v, %v", f, err)
	}
}

// Each key has a comment that a person can read.
func TestEachKeyIsExplained(t *testing.T) {
	c := Default()
	for _, f := range keys(&c) {
		for _, m := range f.members() {
			if m.Tag.Get("about") == "" {
				t.Errorf("%s has no about tag", m.Key)
			}
		}
		if f.rows() == nil && f.Value.Type() != reflect.TypeFor[[]patch.Patch]() && f.Tag.Get("about") == "" && f.Key != "fallback" {
			t.Errorf("%s has no about tag", f.Key)
		}
	}
}

// write makes a launch.toml of that text.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "launch.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
