package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
)

// cutter finds the rules of one file and puts a mutant to sleep in each.
type cutter struct {
	*sleeper
	file  string
	text  []byte
	base  *token.FileSet
	in    string
	edits []edit
}

// add puts the mutants of a file to sleep.
func (s *sleeper) add(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	c := &cutter{sleeper: s, file: file, text: text, base: token.NewFileSet()}
	parsed, err := parser.ParseFile(c.base, file, text, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && !isWording(f) {
			c.in = f.Name.Name
			ast.Inspect(f.Body, c.visit)
		}
	}
	if s.files == nil {
		s.files = map[string][]byte{}
	}
	s.files[file] = apply(text, c.edits)
	return nil
}

// isWording: functions that only put facts into words are not broken.
func isWording(f *ast.FuncDecl) bool {
	switch f.Name.Name {
	case "describe", "how", "because", "round", "remedy", "standing", "tellFlag", "validate":
		return true
	}
	return false
}

// visit breaks conditions (negated), their parts (and for or, or for and), and
// statements that do something (left out). What is only told is let be.
func (c *cutter) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		c.negate(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, s := range n.Body.List {
				for _, e := range s.(*ast.CaseClause).List {
					c.negate(e)
				}
			}
		}
	case *ast.BinaryExpr:
		switch n.Op {
		case token.LAND:
			c.weaken(n, "||", "mutantAnd")
		case token.LOR:
			c.weaken(n, "&&", "mutantOr")
		}
	case *ast.BlockStmt:
		c.leaveOut(n.List)
	case *ast.CaseClause:
		c.leaveOut(n.Body)
	}
	return true
}

func (c *cutter) negate(e ast.Expr) {
	was := c.source(e.Pos(), e.End())
	n := c.mutant(was, "!("+was+")")
	c.wrap(e, fmt.Sprintf("(mutant(%d) != (", n), "))")
}

func (c *cutter) weaken(e *ast.BinaryExpr, other, helper string) {
	is := c.source(e.Pos(), e.OpPos) + other + c.source(e.OpPos+2, e.End())
	n := c.mutant(c.source(e.Pos(), e.End()), is)
	c.wrap(e, fmt.Sprintf("%s(%d, ", helper, n), ") })")
	at := c.base.Position(e.OpPos).Offset
	c.edits = append(c.edits, edit{at: at, drop: 2, text: ", func() bool { return (", seq: n})
}

func (c *cutter) leaveOut(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if isCallOf(s.X, "say") || isCallOf(s.X, "panic") {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		default:
			continue
		}
		n := c.mutant(c.source(s.Pos(), s.End()), "")
		c.wrap(s, fmt.Sprintf("if !mutant(%d) { ", n), " }")
	}
}

func isCallOf(e ast.Expr, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name == name
	case *ast.Ident:
		return f.Name == name
	}
	return false
}

func (c *cutter) mutant(was, is string) int {
	m := mutant{number: len(c.mutants) + 1, file: c.file, in: c.in, was: was, is: is}
	c.mutants = append(c.mutants, m)
	return m.number
}

func (c *cutter) wrap(n ast.Node, before, after string) {
	from, to := c.base.Position(n.Pos()).Offset, c.base.Position(n.End()).Offset
	seq := len(c.mutants)
	c.edits = append(c.edits,
		edit{at: from, span: to - from, text: before, seq: seq},
		edit{at: to, span: to - from, text: after, seq: seq, closing: true})
}

func (c *cutter) source(from, to token.Pos) string {
	return string(c.text[c.base.Position(from).Offset:c.base.Position(to).Offset])
}
