package phases

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"sort"
)

const (
	maxShapes = 1 << 19 // kinds of lines remembered of the good output
	maxNews   = 1 << 13 // kinds of lines that only the bad output has
	maxShown  = 200
)

// Difference is what one output says that another, which went well, never said.
type Difference struct {
	Lines     []Surprise `json:"lines"` // the most surprising first
	Total     int        `json:"total"` // kinds of lines that are new, shown or not
	GoodLines int        `json:"good_lines"`
	BadLines  int        `json:"bad_lines"`
	Missing   []string   `json:"missing,omitempty"` // ids of rules that the good output matched and the bad one never
}

// Surprise is one kind of line: all that differ in numbers, times, ranks and
// paths only.
type Surprise struct {
	Line    int      `json:"line"`  // where it first stands
	Count   int      `json:"count"` // how often
	Ranks   []string `json:"ranks"` // who says it
	Only    bool     `json:"only"`  // some ranks say it, others do not
	Failing bool     `json:"failing"`
	Rules   []string `json:"rules,omitempty"` // ids of the rules that know it
	Text    string   `json:"text"`
}

// Compare reads a good output, then a bad one, and tells what only the bad one
// says. Failure-indicating lines come first, then those of few ranks, then the
// rare ones. It helps where no rule knows the fault.
func Compare(bad, good io.Reader, rules *RuleSet) (Difference, error) {
	c := comparer{rules: rules, known: make(map[uint64]struct{}), news: make(map[uint64]*news)}
	seen := make(map[string]bool)
	if err := c.scan(good, func(l *shapedLine) {
		if len(c.known) < maxShapes {
			c.known[l.sum] = struct{}{}
		}
		c.note(l, seen)
	}); err != nil {
		return Difference{}, fmt.Errorf("cannot read the good output: %w", err)
	}
	d := Difference{GoodLines: c.split.line}
	now := make(map[string]bool)
	c.split = splitter{}
	if err := c.scan(bad, func(l *shapedLine) {
		c.note(l, now)
		c.surprise(l)
	}); err != nil {
		return Difference{}, fmt.Errorf("cannot read the bad output: %w", err)
	}
	d.BadLines = c.split.line
	for id := range seen {
		if !now[id] {
			d.Missing = append(d.Missing, id)
		}
	}
	sort.Strings(d.Missing)
	d.Lines, d.Total = c.ranked()
	return d, nil
}

type comparer struct {
	rules  *RuleSet
	split  splitter
	prefix prefixer
	shape  []byte
	seed   maphash.Seed
	known  map[uint64]struct{}
	news   map[uint64]*news
	ranks  map[string]bool
	lost   int // kinds beyond the bound
	h      header
}

type news struct {
	Surprise
	ranks map[string]bool
}

// A shapedLine is a line and the hash of its shape.
type shapedLine struct {
	line int
	rank string
	msg  []byte
	sum  uint64
}

func (c *comparer) scan(r io.Reader, f func(*shapedLine)) error {
	if c.ranks == nil {
		c.seed, c.ranks = maphash.MakeSeed(), make(map[string]bool)
	}
	buf := make([]byte, readChunk)
	read := func(p *piece) { c.read(p, f) }
	for {
		n, err := r.Read(buf)
		c.split.feed(buf[:n], read)
		if err == io.EOF {
			c.split.finish(read)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *comparer) read(p *piece, f func(*shapedLine)) {
	c.h = header{number: -1, marks: markAll}
	before := c.prefix.parse(p.text, &c.h)
	for _, msg := range [][]byte{before, c.h.msg} {
		if len(bytes.TrimSpace(msg)) == 0 || bytes.HasPrefix(msg, serverArgs) {
			continue
		}
		c.shape = shapeOf(c.shape[:0], msg)
		l := shapedLine{line: p.line, rank: mainRank, msg: msg, sum: maphash.Bytes(c.seed, c.shape)}
		if c.h.rank != nil {
			l.rank = string(c.h.rank)
		} else if c.h.number >= 0 {
			l.rank = fmt.Sprintf("rank%d", c.h.number)
		}
		f(&l)
	}
}

// shapeOf appends a message with its numbers, addresses, paths and quoted
// values made alike. Words stay: they are what tells two lines apart.
func shapeOf(dst, msg []byte) []byte {
	for i := 0; i < len(msg) && len(dst) < 400; {
		c := msg[i]
		switch {
		case isDigit(c):
			for i < len(msg) && isValueByte(msg[i]) {
				i++
			}
			dst = append(dst, '#')
		case c == '/' && (i == 0 || !isNameByte(msg[i-1])):
			for i < len(msg) && msg[i] > ' ' && msg[i] != '"' && msg[i] != '\'' && msg[i] != ',' {
				i++
			}
			dst = append(dst, '/')
		case c == '|' || c >= 0x80 || c == '#':
			i++ // the drawing of bars
		case c == ' ' && len(dst) > 0 && dst[len(dst)-1] == ' ':
			i++
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// isValueByte continues a number: 12.5, 0x7f3a, 1e-5, 512M, 3it.
func isValueByte(c byte) bool {
	return isDigit(c) || c == '.' || c == ':' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// note remembers which milestones an output reached.
func (c *comparer) note(l *shapedLine, seen map[string]bool) {
	var hits hitSet
	c.rules.find(l.msg, &hits)
	hits.each(func(i int) {
		r := c.rules.rules[i]
		if r.Kind == RuleFault || r.Kind == RuleNoise || r.Kind == RuleFrame || seen[r.ID] {
			return
		}
		if _, ok := r.match(l.msg); ok {
			seen[r.ID] = true
		}
	})
}

// surprise counts a line that the good output never said.
func (c *comparer) surprise(l *shapedLine) {
	c.ranks[l.rank] = true
	if _, known := c.known[l.sum]; known {
		return
	}
	n := c.news[l.sum]
	if n == nil {
		if len(c.news) >= maxNews {
			c.lost++
			return
		}
		n = &news{Surprise: Surprise{Line: l.line, Text: clip(l.msg, maxFaultText)}, ranks: make(map[string]bool)}
		n.Failing, n.Rules = c.failing(l.msg)
		c.news[l.sum] = n
	}
	n.Count++
	if len(n.ranks) < 64 {
		n.ranks[l.rank] = true
	}
}

var failingWords = [][]byte{
	[]byte("rror"), []byte("xception"), []byte("ail"), []byte("FATAL"), []byte("fatal"), []byte("Traceback"), []byte("abort"),
	[]byte("Abort"), []byte("timeout"), []byte("timed out"), []byte("refused"), []byte("denied"), []byte("illed"), []byte("ERROR"),
}

// failing tells whether a rule, or else a word, marks a line as bad.
func (c *comparer) failing(msg []byte) (bad bool, ids []string) {
	for _, id := range c.rules.Match(msg) {
		r := c.rules.byID[id]
		ids = append(ids, id)
		if r.Kind == RuleNoise {
			return false, ids
		}
		bad = bad || r.Kind == RuleFault
	}
	for _, word := range failingWords {
		bad = bad || bytes.Contains(msg, word)
	}
	return bad, ids
}

// ranked orders the new lines by how much they tell.
func (c *comparer) ranked() ([]Surprise, int) {
	all := make([]Surprise, 0, len(c.news))
	for _, n := range c.news {
		for rank := range n.ranks {
			n.Ranks = append(n.Ranks, rank)
		}
		sortRanks(n.Ranks)
		n.Only = len(n.Ranks) < len(c.ranks)
		all = append(all, n.Surprise)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := &all[i], &all[j]
		switch {
		case a.Failing != b.Failing:
			return a.Failing
		case known(a) != known(b):
			return known(a)
		case len(a.Ranks) != len(b.Ranks):
			return len(a.Ranks) < len(b.Ranks)
		case a.Count != b.Count:
			return a.Count < b.Count
		}
		return a.Line < b.Line
	})
	return all[:min(len(all), maxShown)], len(all) + c.lost
}

func known(s *Surprise) bool { return len(s.Rules) > 0 }

// WriteDifference writes a difference for a person.
func WriteDifference(w io.Writer, d Difference) error {
	p := &printer{w: w}
	p.line("%d kinds of lines stand only in the bad output (%d lines; the good one has %d)", d.Total, d.BadLines, d.GoodLines)
	for _, failing := range []bool{true, false} {
		first := true
		for _, s := range d.Lines {
			if s.Failing != failing {
				continue
			}
			if first {
				p.line("")
				p.line("%s", map[bool]string{true: "failure-indicating:", false: "other:"}[failing])
				first = false
			}
			p.line("  line %d, %d times, %s: %s", s.Line, s.Count, shorten(s.Ranks, 8), clip([]byte(s.Text), 200))
		}
	}
	if len(d.Missing) > 0 {
		p.line("")
		p.line("the good output also had: %s", shorten(d.Missing, 20))
	}
	return p.err
}
