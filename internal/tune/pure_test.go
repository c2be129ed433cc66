package tune

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// effectful are the files that read what is outside: a study, a base.
var effectful = []string{"load.go", "base.go"}

// TestTheNightIsPure: what a night decides must follow from its records and the
// time that it is given, or a journal could not be taken up.
func TestTheNightIsPure(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || slices.Contains(effectful, name) {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range file.Imports {
			switch path := strings.Trim(imported.Path.Value, `"`); path {
			case "os", "io", "net", "net/http", "os/exec", "context", "sync", "math/rand", "math/rand/v2", "log":
				t.Errorf("%s: a night must not import %s", set.Position(imported.Pos()), path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if what := impure(n); what != "" {
				t.Errorf("%s: a night must not use %s", set.Position(n.Pos()), what)
			}
			return true
		})
	}
}

// impure names what reads a clock, waits, or starts something.
func impure(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
		return "a channel"
	case *ast.SelectorExpr:
		if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" {
			switch n.Sel.Name {
			case "Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker":
				return "time." + n.Sel.Name
			}
		}
	}
	return ""
}
