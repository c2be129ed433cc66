package config

import (
	"bytes"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// positions maps a key path, as join writes it, to its line in the file. The
// decoder says what is wrong with a value; only the parser knows where it
// stands.
type positions map[string]int

// line finds the line of a key, or of the nearest key around it. It is 0 for
// a key of which the file holds no part.
func (p positions) line(key string) int {
	for key != "" {
		if line, ok := p[key]; ok {
			return line
		}
		key = parent(key)
	}
	return 0
}

// locate finds the line of each key in a document. It must only be asked for
// documents that parse.
func locate(document []byte) positions {
	s := scan{lines: newLineIndex(document), found: positions{}, rows: map[string]int{}}
	var p unstable.Parser
	p.Reset(document)
	table := ""
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table:
			table = s.walk("", e.Key())
		case unstable.ArrayTable:
			table = s.row(e.Key())
		case unstable.KeyValue:
			s.value(s.walk(table, e.Key()), e.Value())
		}
	}
	return s.found
}

// maxPath bounds the paths that are told apart. No key of ours is near it, and
// a hostile document must not cost the square of its length.
const maxPath = 512

// scan is one pass over a document.
type scan struct {
	lines lineIndex
	found positions
	rows  map[string]int // array of tables -> rows so far
}

// walk goes from a table along a dotted key and marks every step. A step that
// names an array of tables means its last row.
func (s *scan) walk(table string, steps unstable.Iterator) string {
	for steps.Next() {
		table = s.step(table, steps.Node())
	}
	return table
}

// row is walk for the header of an array of tables: its last step is a new row.
func (s *scan) row(steps unstable.Iterator) string {
	table := ""
	for steps.Next() {
		if steps.IsLast() {
			s.rows[join(table, string(steps.Node().Data))]++
		}
		table = s.step(table, steps.Node())
	}
	return table
}

func (s *scan) step(table string, node *unstable.Node) string {
	if len(table) > maxPath {
		return table
	}
	key := join(table, string(node.Data))
	s.mark(key, node)
	if n := s.rows[key]; n > 0 {
		key = element(key, n-1)
		s.mark(key, node)
	}
	return key
}

// mark keeps the first place of a key: later ones only reopen its table.
func (s *scan) mark(key string, node *unstable.Node) {
	if _, ok := s.found[key]; !ok {
		s.found[key] = s.lines.at(int(node.Raw.Offset))
	}
}

func (s *scan) value(key string, value *unstable.Node) {
	if len(key) > maxPath {
		return
	}
	children := value.Children()
	switch value.Kind {
	case unstable.InlineTable:
		for children.Next() {
			pair := children.Node()
			s.value(s.walk(key, pair.Key()), pair.Value())
		}
	case unstable.Array:
		for i := 0; children.Next(); {
			if children.Node().Kind == unstable.Comment {
				continue
			}
			s.value(element(key, i), children.Node())
			i++
		}
	}
}

// lineIndex holds the offset of each line feed.
type lineIndex []int

func newLineIndex(document []byte) lineIndex {
	var index lineIndex
	for at := 0; ; {
		i := bytes.IndexByte(document[at:], '\n')
		if i < 0 {
			return index
		}
		index = append(index, at+i)
		at += i + 1
	}
}

func (l lineIndex) at(offset int) int { return 1 + sort.SearchInts(l, offset) }

// join writes the path of a key in a table, quoting what TOML would quote.
func join(table, key string) string {
	if !isBare(key) {
		key = strconv.Quote(key)
	}
	if table == "" {
		return key
	}
	return table + "." + key
}

func element(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }

// parent drops the last step of a path. Quoted steps may hold dots, so it is
// only near enough for finding a line to point at.
func parent(key string) string {
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}

func isBare(key string) bool {
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return key != ""
}
