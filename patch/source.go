package patch

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// source is Python text with what an anchor needs to know of it: which bytes
// are code, and where each class and def begins and ends. It is read without an
// interpreter so that a plan stays a pure function of bytes; a test compares it
// with the interpreter's own parser over the whole standard library.
type source struct {
	text   []byte
	code   []bool // per byte: neither in a comment nor in a string's inside
	scopes []scope
}

// scope is the stretch of one class or def, header line included.
type scope struct {
	kind, name string
	indent     int
	start, end int // byte offsets, end exclusive, at a line's end
	parent     int // index of the enclosing scope, -1 for the file
}

// line is one logical line: brackets and triple quotes keep it open over
// several physical ones.
type line struct {
	start, end int
	indent     int
	comment    bool // nothing but a comment
}

func readSource(text []byte) *source {
	s := &source{text: text, code: make([]bool, len(text))}
	s.nest(s.lines())
	return s
}

// lines splits the text into logical lines and fills in the code mask.
func (s *source) lines() []line {
	var all []line
	for at := 0; at < len(s.text); {
		var l line
		l, at = s.line(at)
		if l.indent >= 0 {
			all = append(all, l)
		}
	}
	return all
}

// line reads one logical line from start. A blank one has indent -1.
func (s *source) line(start int) (line, int) {
	l := line{start: start, indent: -1}
	at := start
	if start == 0 && bytes.HasPrefix(s.text, []byte("\xef\xbb\xbf")) {
		at = 3
	}
	column := 0
	for ; at < len(s.text); at++ {
		switch s.text[at] {
		case ' ':
			column++
			continue
		case '\t':
			column = (column/8 + 1) * 8
			continue
		case '\f':
			column = 0
			continue
		}
		break
	}
	if at < len(s.text) && s.text[at] != '\n' && s.text[at] != '\r' {
		l.indent, l.comment = column, s.text[at] == '#'
	}
	depth := 0
	for at < len(s.text) {
		switch c := s.text[at]; {
		case c == '#':
			at = endOfLine(s.text, at)
			continue
		case c == '"' || c == '\'':
			at = s.quoted(at)
			continue
		case c == '\\' && at+1 < len(s.text):
			s.code[at] = true
			at++ // the newline it may hide belongs to this line
			if s.text[at] == '\r' && at+1 < len(s.text) && s.text[at+1] == '\n' {
				at++
			}
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth = max(depth-1, 0)
		case c == '\n' && depth == 0:
			l.end = at + 1
			return l, at + 1
		}
		s.code[at] = true
		at++
	}
	l.end = at
	return l, at
}

// quoted passes over a string literal whose opening quote is at start, and
// returns the offset after it. Quotes count as code, the inside does not. An
// unclosed one-line string ends with its line, as the tokenizer would have it.
func (s *source) quoted(start int) int {
	quote := s.text[start : start+1]
	triple := bytes.Repeat(quote, 3)
	if bytes.HasPrefix(s.text[start:], triple) {
		quote = triple
	}
	at := start + len(quote)
	for i := start; i < at; i++ {
		s.code[i] = true
	}
	for at < len(s.text) {
		switch {
		case s.text[at] == '\\':
			at += 2
		case bytes.HasPrefix(s.text[at:], quote):
			for i := range quote {
				s.code[at+i] = true
			}
			return at + len(quote)
		case s.text[at] == '\n' && len(quote) == 1:
			return at
		default:
			at++
		}
	}
	return len(s.text)
}

func endOfLine(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}

var header = regexp.MustCompile(`^[ \t\f]*(?:async[ \t]+)?(class|def)[ \t]+([\pL_][\pL\pN_]*)`)

// nest finds the scopes. A scope reaches to the last line that is deeper than
// its header; a comment after it counts only where it is deeper too.
func (s *source) nest(lines []line) {
	var open []int
	for _, l := range lines {
		for len(open) > 0 && !l.comment && l.indent <= s.scopes[open[len(open)-1]].indent {
			open = open[:len(open)-1]
		}
		for _, i := range open {
			if l.indent > s.scopes[i].indent {
				s.scopes[i].end = l.end
			}
		}
		m := header.FindSubmatch(bytes.TrimPrefix(s.text[l.start:l.end], []byte("\xef\xbb\xbf")))
		if m == nil || l.comment {
			continue
		}
		parent := -1
		if len(open) > 0 {
			parent = open[len(open)-1]
		}
		open = append(open, len(s.scopes))
		s.scopes = append(s.scopes, scope{
			kind: string(m[1]), name: string(m[2]), indent: l.indent, start: l.start, end: l.end, parent: parent,
		})
	}
}

// path names a scope from the outside in: "class A / def b".
func (s *source) path(i int) string {
	var parts []string
	for ; i >= 0; i = s.scopes[i].parent {
		parts = append([]string{s.scopes[i].kind + " " + s.scopes[i].name}, parts...)
	}
	return strings.Join(parts, " / ")
}

// enclosing names the innermost scope around an offset, "" for the file itself.
func (s *source) enclosing(offset int) string {
	inner := -1
	for i, sc := range s.scopes {
		if sc.start <= offset && offset < sc.end {
			inner = i
		}
	}
	return s.path(inner)
}

// lineAt numbers the line of an offset, from 1.
func (s *source) lineAt(offset int) int { return 1 + bytes.Count(s.text[:offset], []byte("\n")) }

// scopePart is one step of Edit.Within.
type scopePart struct{ kind, name string }

var scopeForm = regexp.MustCompile(`^(class|def)[ \t]+([\pL_][\pL\pN_]*)$`)

// parseScope reads "class A / def b". Each part may be nested at any depth in
// the one before it.
func parseScope(within string) ([]scopePart, error) {
	if strings.TrimSpace(within) == "" {
		return nil, nil
	}
	var parts []scopePart
	for text := range strings.SplitSeq(within, "/") {
		m := scopeForm.FindStringSubmatch(strings.TrimSpace(text))
		if m == nil {
			return nil, fmt.Errorf("within = %q is not of the form \"def name\", \"class A\" or \"class A / def name\"", within)
		}
		parts = append(parts, scopePart{m[1], m[2]})
	}
	return parts, nil
}

// within returns the one stretch of the text that the scope names.
func (s *source) within(name string) (start, end int, err error) {
	parts, err := parseScope(name)
	if err != nil || len(parts) == 0 {
		return 0, len(s.text), err
	}
	var found []int
	for i := range s.scopes {
		if s.matches(i, parts) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return 0, 0, &mismatch{reason: fmt.Sprintf("there is no %s", name), absent: true}
	case 1:
		return s.scopes[found[0]].start, s.scopes[found[0]].end, nil
	}
	return 0, 0, &mismatch{reason: fmt.Sprintf("%s is there %d times (lines %s): name the class around it", name, len(found), s.lineList(found))}
}

func (s *source) matches(i int, parts []scopePart) bool {
	last := parts[len(parts)-1]
	if s.scopes[i].kind != last.kind || s.scopes[i].name != last.name {
		return false
	}
	rest := parts[:len(parts)-1]
	for up := s.scopes[i].parent; up >= 0 && len(rest) > 0; up = s.scopes[up].parent {
		want := rest[len(rest)-1]
		if s.scopes[up].kind == want.kind && s.scopes[up].name == want.name {
			rest = rest[:len(rest)-1]
		}
	}
	return len(rest) == 0
}

func (s *source) lineList(scopes []int) string {
	var numbers []string
	for _, i := range scopes {
		numbers = append(numbers, fmt.Sprint(s.lineAt(s.scopes[i].start)))
	}
	return strings.Join(numbers, ", ")
}

// holds tells whether an anchor's text stands in the named scope as code: its
// first and last byte outside of comments and strings. The inside of a quoted
// text is no code, its quotes are.
func (s *source) holds(a Anchor) bool {
	start, end, err := s.within(a.Within)
	if err != nil {
		return false
	}
	find := strings.TrimSpace(a.Find)
	for at := start; ; at++ {
		i := bytes.Index(s.text[at:end], []byte(find))
		if i < 0 {
			return false
		}
		at += i
		if s.code[at] && s.code[at+len(find)-1] {
			return true
		}
	}
}
