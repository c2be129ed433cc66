package patch

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// scopesByPython lists the classes and defs of every file under the standard
// library's folder as Python's own parser has them: file -> "class A 3-17".
const scopesByPython = `
import ast, json, os, sys, tokenize
out, seen = {}, 0
root = os.path.dirname(os.__file__)
for dir, dirs, files in os.walk(root):
    dirs[:] = sorted(d for d in dirs if d not in ("site-packages", "lib2to3", "test", "tests", "idlelib", "__pycache__"))
    for name in sorted(files):
        path = os.path.join(dir, name)
        seen += 1
        if seen % 3:
            continue
        if not name.endswith(".py"):
            continue
        data = open(path, "rb").read()
        try:
            with tokenize.open(path) as f:
                if f.encoding not in ("utf-8", "utf-8-sig"):
                    continue
            tree = ast.parse(data)
        except (SyntaxError, UnicodeDecodeError, ValueError):
            continue
        if b"\f" in data or b"\r" in data:
            continue
        kinds = {ast.ClassDef: "class", ast.FunctionDef: "def", ast.AsyncFunctionDef: "def"}
        out[path] = ["%s %s %d-%d" % (kinds[type(n)], n.name, n.lineno, n.end_lineno) for n in ast.walk(tree) if type(n) in kinds]
json.dump(out, sys.stdout)
`

// The reader of scopes must agree with Python about real code: the whole
// standard library, its tests included where they are installed.
func TestScopesAgreeWithPython(t *testing.T) {
	t.Parallel()
	python, err := realPython()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python.Exe, "-I", "-S", "-B", "-c", scopesByPython).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]string
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) < 100 {
		t.Fatalf("only %d files", len(want))
	}
	for path, scopes := range want {
		got := scopesOf(t, path)
		slices.Sort(got)
		slices.Sort(scopes)
		if diff := cmp.Diff(scopes, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-python +ours):\n%s", path, diff)
		}
	}
}

func scopesOf(t *testing.T, path string) []string {
	s := readSource([]byte(readText(t, path)))
	lines := newlines(s.text)
	var all []string
	for _, sc := range s.scopes {
		end := sc.end
		for end > sc.start { // Python ends a scope with its last token: comments do not count
			start := s.lineStart(end - 1)
			text := strings.TrimSpace(string(s.text[start:end]))
			if text != "" && !strings.HasPrefix(text, "#") {
				break
			}
			end = start
		}
		all = append(all, fmt.Sprintf("%s %s %d-%d", sc.kind, sc.name, lines.at(sc.start), lines.at(end-1)))
	}
	return all
}

// newlines are the offsets of line ends, to number lines fast.
type lineEnds []int

func newlines(text []byte) (ends lineEnds) {
	for i, c := range text {
		if c == '\n' {
			ends = append(ends, i)
		}
	}
	return ends
}

func (l lineEnds) at(offset int) int {
	n, _ := slices.BinarySearch(l, offset)
	return n + 1
}
