package tune

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const exampleFile = "../../examples/tune.toml"

// TestTheExampleFile: it reads, and where it says that a value is the default it
// is.
func TestTheExampleFile(t *testing.T) {
	s, err := Read(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	d := DefaultStudy()
	d.Name, d.Base, d.Deadline = s.Name, s.Base, s.Deadline
	d.Constraints, d.Axes, d.Trials, d.Excludes, d.Loads, d.Probe = s.Constraints, s.Axes, s.Trials, s.Excludes, s.Loads, s.Probe
	if diff := cmp.Diff(d, s); diff != "" {
		t.Errorf("the example shows other values than the defaults:\n%s", diff)
	}
	trials, err := s.Expand(nil, Facts{})
	if err != nil || len(trials) != 8 {
		t.Errorf("it has %d trials, %v", len(trials), err)
	}
}

// TestTheExampleFileIsComplete: every key stands in it, and nothing else.
func TestTheExampleFileIsComplete(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range keyNames(reflect.TypeFor[Study]()) {
		if !regexp.MustCompile(`(?m)^(# )?(\[{1,2})?` + name + `\b`).Match(data) {
			t.Errorf("the example does not show %s", name)
		}
	}
}

// keyNames are all keys below a struct; those of a patch belong to launch.toml.
func keyNames(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		name := f.Tag.Get("toml")
		if name == "" {
			continue
		}
		names = append(names, name)
		inner := f.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && strings.HasSuffix(inner.PkgPath(), "internal/tune") {
			names = append(names, keyNames(inner)...)
		}
	}
	return names
}
