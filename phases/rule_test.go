package phases

import (
	"bytes"
	"strings"
	"testing"
)

// TestBuiltinRulesExamples runs every example of every embedded rule: each rule
// must know its hits, in the shape in which a line comes, and not its misses.
func TestBuiltinRulesExamples(t *testing.T) {
	for _, r := range BuiltinRules().Rules() {
		if len(r.Hits) == 0 {
			t.Errorf("%s: has no hits", r.ID)
		}
		if len(r.Misses) == 0 {
			t.Errorf("%s: has no misses", r.ID)
		}
		for _, problem := range r.Check() {
			t.Errorf("%s: %s", r.ID, problem)
		}
	}
}

// TestHitsAreNotNoise makes sure that no harmless rule hides a line that another
// rule calls its own.
func TestHitsAreNotNoise(t *testing.T) {
	set := BuiltinRules()
	for _, r := range set.Rules() {
		if r.Kind == RuleNoise || r.Kind == RuleFrame {
			continue
		}
		for _, hit := range r.Hits {
			for _, id := range set.Match([]byte(hit)) {
				if other, _ := set.Rule(id); other.Kind == RuleNoise {
					t.Errorf("%s: its hit %q is noise to %s", r.ID, hit, id)
				}
			}
		}
	}
}

// TestMatcherAgainstContains compares the one-pass matcher with the plain way.
func TestMatcherAgainstContains(t *testing.T) {
	set := BuiltinRules()
	var hits hitSet
	for _, r := range set.rules {
		for _, line := range append(r.Hits, r.Misses...) {
			hits.reset()
			set.find([]byte(line), &hits)
			found := make(map[int]bool)
			hits.each(func(i int) { found[i] = true })
			for i, other := range set.rules {
				if want := strings.Contains(line, other.Lit) && (len(other.Lit) >= longLiteral || len(line) <= shortMessage); found[i] != want {
					t.Errorf("literal %q in %q: got %t", other.Lit, line, found[i])
				}
			}
		}
	}
}

func FuzzMatcher(f *testing.F) {
	literals := []string{"abcdef", "bcdefg", "defghij", "aaaaaa", "aaaaaab", "xyzxyzxyz"}
	var numbered []literal
	for i, text := range literals {
		numbered = append(numbered, literal{text: text, number: i})
	}
	m := newMatcher(numbered, minLiteral)
	f.Add([]byte("abcdefghij aaaaaab"))
	f.Add([]byte("xyzxyzxyzxyz"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var hits hitSet
		m.find(text, &hits)
		found := make(map[int]bool)
		hits.each(func(i int) { found[i] = true })
		for i, lit := range literals {
			if want := bytes.Contains(text, []byte(lit)); found[i] != want {
				t.Errorf("literal %q in %q: got %t", lit, text, found[i])
			}
		}
	})
}
