package rehearsal

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of scenarios into docs/rehearsal.md")

const docs = "../../docs/rehearsal.md"

func TestDocsListTheScenarios(t *testing.T) {
	content, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	begin, rest, ok := strings.Cut(string(content), "-update -->\n")
	_, end, ok2 := strings.Cut(rest, "<!-- end -->")
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks around the table", docs)
	}
	want := begin + "-update -->\n" + scenarioTable() + "<!-- end -->" + end
	if want == string(content) {
		return
	}
	if !*update {
		t.Fatalf("the table in %s is not that of the code; run the test with -update", docs)
	}
	if err := os.WriteFile(docs, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func scenarioTable() string {
	var b strings.Builder
	b.WriteString("| scenario | what happens | release |\n| --- | --- | --- |\n")
	for _, sc := range Scenarios() {
		version := sc.Version
		if version == "" {
			version = DefaultVersion
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", sc.Name, sc.About, version)
	}
	return b.String()
}

// Every cue that a scenario waits for is given somewhere, and every act exists.
func TestScenariosAreSound(t *testing.T) {
	var scripts []struct {
		Name string
		Acts []struct{ At, Do string }
	}
	if err := json.Unmarshal(scenariosJSON, &scripts); err != nil {
		t.Fatal(err)
	}
	code := pythonSource(t)
	for _, sc := range scripts {
		for _, a := range sc.Acts {
			if !strings.Contains(code, fmt.Sprintf("cue(%q", a.At)) {
				t.Errorf("%s waits for %q, which nobody gives", sc.Name, a.At)
			}
			if !strings.Contains(code, fmt.Sprintf("%q: _", a.Do)) {
				t.Errorf("%s does %q, which acts.py does not know", sc.Name, a.Do)
			}
		}
	}
}

// pythonSource is the whole of the embedded packages.
func pythonSource(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := fs.WalkDir(pythonFiles, "python", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := pythonFiles.ReadFile(path)
		all.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestNamesOfScenarios(t *testing.T) {
	seen := map[string]bool{}
	for _, sc := range Scenarios() {
		if seen[sc.Name] || sc.Name == "" || strings.ContainsAny(sc.Name, ", \n") {
			t.Errorf("%q is no name for a scenario", sc.Name)
		}
		seen[sc.Name] = true
		if !strings.HasSuffix(sc.About, ".") && !strings.HasSuffix(sc.About, `."`) {
			t.Errorf("%s: %q is no sentence", sc.Name, sc.About)
		}
		if sc.Version != "" {
			if _, err := autotuneList(sc.Version); err != nil {
				t.Errorf("%s: %v", sc.Name, err)
			}
		}
	}
}
