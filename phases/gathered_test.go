package phases

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

// TestGathered: what a start reads is what stands in the rules folder, and that is
// valid. -update writes it.
func TestGathered(t *testing.T) {
	names, err := filepath.Glob("rules/*.toml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	var want bytes.Buffer
	comma := "["
	for _, name := range names {
		for _, r := range rulesIn(t, name) {
			fmt.Fprintf(&want, "%s\n%s", comma, asJSON(t, r))
			comma = ","
		}
	}
	want.WriteString("\n]\n")
	if *update {
		if err := os.WriteFile("rules/gathered.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), string(gathered)); diff != "" {
		t.Errorf("rules/gathered.json is not what the rules say (go test ./phases -run TestGathered -update):\n%s", diff)
	}
}

// rulesIn reads a file of [[rule]] tables.
func rulesIn(t *testing.T, name string) []*Rule {
	t.Helper()
	var doc struct {
		Rule []*Rule `toml:"rule"`
	}
	meta, err := toml.DecodeFile(name, &doc)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		t.Errorf("%s: unknown key %q", name, unknown[0])
	}
	for _, r := range doc.Rule {
		r.File = filepath.Base(name)
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return doc.Rule
}
