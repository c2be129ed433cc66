package phases

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

// gathered are the rules of the rules folder, one a line. Every start of sglaunch
// reads them: they were checked before, and JSON is read ten times as fast as TOML.
//
//go:embed rules/gathered.json
var gathered []byte

// A RuleSet is a list of rules ready for matching. It is read-only once built
// and may be shared by any number of trackers.
type RuleSet struct {
	rules    []*Rule
	byID     map[string]*Rule
	expected []int    // numbers of the rules that every start matches
	wide     *matcher // of literals from wideLiteral on
	narrow   *matcher // of those below
	short    []int    // numbers of the rules that are only looked for in short messages
}

var builtin = sync.OnceValue(func() *RuleSet {
	var all []*Rule
	if err := json.Unmarshal(gathered, &all); err != nil {
		panic(err)
	}
	set, err := newRuleSet(all)
	if err != nil {
		panic(err)
	}
	return set
})

// BuiltinRules returns the rules that ship with sglaunch. It panics only where
// what was gathered is broken, which a test guards against.
func BuiltinRules() *RuleSet { return builtin() }

// NewRuleSet builds a set from rules that were decoded elsewhere: launch.toml, or
// a file of a user's own.
func NewRuleSet(rules []Rule) (*RuleSet, error) {
	list := make([]*Rule, len(rules))
	for i := range rules {
		own := rules[i]
		own.compiled = nil
		list[i] = &own
		if err := list[i].Validate(); err != nil {
			return nil, err
		}
	}
	return newRuleSet(list)
}

// With returns a set in which the rules of other stand before those of s; a
// rule of the same id replaces that of s in its place.
func (s *RuleSet) With(other *RuleSet) *RuleSet {
	if other == nil || len(other.rules) == 0 {
		return s
	}
	var merged []*Rule
	for _, r := range other.rules {
		if s.byID[r.ID] == nil {
			merged = append(merged, r)
		}
	}
	for _, r := range s.rules {
		if mine := other.byID[r.ID]; mine != nil {
			r = mine
		}
		merged = append(merged, r)
	}
	set, err := newRuleSet(merged)
	if err != nil {
		panic(err) // both sets were valid and ids are unique by construction
	}
	return set
}

// Rules lists the rules in the order in which they are tried.
func (s *RuleSet) Rules() []*Rule { return append([]*Rule(nil), s.rules...) }

// Rule finds a rule by its id.
func (s *RuleSet) Rule(id string) (*Rule, bool) {
	r, ok := s.byID[id]
	return r, ok
}

// newRuleSet indexes valid rules and builds their matcher.
func newRuleSet(rules []*Rule) (*RuleSet, error) {
	set := &RuleSet{rules: rules, byID: make(map[string]*Rule, len(rules))}
	wide := []literal{{text: string(tracebackHead), number: -1}, {text: string(serverArgs), number: -1}}
	narrow := []literal{{text: string(ncclMark), number: -1}}
	for i, r := range rules {
		r.prepare()
		if other := set.byID[r.ID]; other != nil {
			return nil, fmt.Errorf("cannot use rule %q twice: it stands in %q and in %q", r.ID, other.File, r.File)
		}
		set.byID[r.ID] = r
		if r.Expected {
			set.expected = append(set.expected, i)
		}
		if len(r.Lit) < longLiteral {
			set.short = append(set.short, i)
		}
		if l := (literal{text: r.Lit, number: i}); len(r.Lit) >= wideLiteral {
			wide = append(wide, l)
		} else {
			narrow = append(narrow, l)
		}
	}
	set.wide = newMatcher(wide, wideLiteral)
	set.narrow = newMatcher(narrow, minLiteral)
	return set, nil
}

// find adds the numbers of the rules whose literal stands in a message.
func (s *RuleSet) find(msg []byte, found *hitSet) {
	s.wide.find(msg, found)
	s.narrow.find(msg, found)
	if len(msg) > shortMessage {
		for _, number := range s.short {
			found.remove(number)
		}
	}
}
