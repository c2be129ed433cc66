package patch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// mismatch is why a change does not fit a text. It is a finding about content,
// not a failure.
type mismatch struct {
	reason string
	hint   string // a place where it might be meant; never used by itself
	absent bool   // the scope or the text is not there at all, rather than too often
}

func (m *mismatch) Error() string { return m.reason }

// span is where an edit goes.
type span struct {
	start, end int
	replace    string
}

// applyEdits returns the text with every edit made, or a *mismatch. All places
// are looked up in the text as it is, so that no edit can match what another
// one wrote, and the order does not matter.
func applyEdits(text []byte, edits []Edit) ([]byte, error) {
	spans, err := locateEdits(readSource(text), edits)
	if err != nil {
		return nil, err
	}
	return splice(text, spans), nil
}

func locateEdits(s *source, edits []Edit) ([]span, error) {
	var spans []span
	for _, e := range edits {
		found, err := s.locate(e)
		if err != nil {
			return nil, err
		}
		spans = append(spans, found...)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	for i := 1; i < len(spans); i++ {
		if spans[i].start < spans[i-1].end {
			return nil, &mismatch{reason: fmt.Sprintf("two edits meet in line %d: make them one", s.lineAt(spans[i].start))}
		}
	}
	return spans, nil
}

func (s *source) locate(e Edit) ([]span, error) {
	start, end, err := s.within(e.Within)
	if err != nil {
		return nil, err
	}
	if e.Find == "" {
		return nil, &mismatch{reason: "the text to find is empty", absent: true}
	}
	var spans []span
	for at := start; ; {
		i := bytes.Index(s.text[at:end], []byte(e.Find))
		if i < 0 {
			break
		}
		spans = append(spans, span{at + i, at + i + len(e.Find), e.Replace})
		at += i + len(e.Find)
	}
	if len(spans) != e.times() {
		return nil, s.miscount(e, spans)
	}
	return spans, nil
}

// adds tells whether the edit leaves what it finds and only puts text beside it.
func (e Edit) adds() bool {
	return strings.Contains(e.Replace, e.Find)
}

func (s *source) miscount(e Edit, spans []span) *mismatch {
	m := &mismatch{absent: len(spans) == 0}
	m.reason = fmt.Sprintf("the text %s occurs %d times%s, not %d", shorten(e.Find), len(spans), inScope(e.Within), e.times())
	switch elsewhere := bytes.Index(s.text, []byte(e.Find)); {
	case len(spans) > 0:
		m.hint = fmt.Sprintf("count = %d would change all of them", len(spans))
	case elsewhere >= 0:
		m.hint = fmt.Sprintf("it stands in line %d, in %s", s.lineAt(elsewhere), orFile(s.enclosing(elsewhere)))
	case bytes.Contains(s.text, []byte("\r\n")) && bytes.Contains([]byte(e.Find), []byte("\n")):
		m.hint = `the file ends its lines with \r\n; write find that way`
	case strings.Contains(e.Find, "\r\n") && !bytes.Contains(s.text, []byte("\r\n")):
		m.hint = `find ends its lines with \r\n and the file does not; write it with \n`
	}
	return m
}

func inScope(within string) string {
	if within == "" {
		return ""
	}
	return " in " + within
}

func orFile(scope string) string {
	if scope == "" {
		return "no class or def"
	}
	return scope
}

func shorten(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

func splice(text []byte, spans []span) []byte {
	var out bytes.Buffer
	at := 0
	for _, sp := range spans {
		out.Write(text[at:sp.start])
		out.WriteString(sp.replace)
		at = sp.end
	}
	out.Write(text[at:])
	return out.Bytes()
}

// reversed swaps what to find and what to put. An edit that deletes its text
// cannot be reversed by looking for the result.
func reversed(edits []Edit) ([]Edit, bool) {
	back := slices.Clone(edits)
	for i, e := range back {
		if e.Replace == "" {
			return nil, false
		}
		back[i].Find, back[i].Replace = e.Replace, e.Find
	}
	return back, true
}
