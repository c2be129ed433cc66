package machine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowed are all that the machine may import: what it decides must follow from
// events alone, or a journal could not be replayed.
var allowed = []string{
	"cmp", "encoding/json", "fmt", "maps", "math", "path/filepath", "reflect", "regexp", "slices", "strconv", "strings", "time",
	"sglaunch/internal/shim/wire", "sglaunch/phases",
}

func TestTheMachineIsPure(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range file.Imports {
			if path := strings.Trim(imported.Path.Value, `"`); !slices.Contains(allowed, path) {
				t.Errorf("%s: the machine must not import %s", files.Position(imported.Pos()), path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if what := impure(n); what != "" {
				t.Errorf("%s: the machine must not use %s", files.Position(n.Pos()), what)
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
		pkg, ok := n.X.(*ast.Ident)
		if !ok || pkg.Name != "time" {
			return ""
		}
		switch n.Sel.Name {
		case "Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker":
			return "time." + n.Sel.Name
		}
	}
	return ""
}

// TestImpureIsSeen shows the test above what it must find.
func TestImpureIsSeen(t *testing.T) {
	const sample = `package p
func f(c chan int) {
	go f(c)
	c <- 1
	select {}
	_ = time.Now()
	_ = time.After(1)
}`
	file, err := parser.ParseFile(token.NewFileSet(), "", sample, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if n != nil && impure(n) != "" {
			found++
		}
		return true
	})
	if found != 6 {
		t.Errorf("found %d of 6", found)
	}
}
