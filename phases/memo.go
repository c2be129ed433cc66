package phases

import (
	"bytes"
	"hash/maphash"
	"strconv"
)

// A match is a rule that fits a message.
type match struct {
	rule    *Rule
	number  int // of the rule in its set
	groups  []int
	numbers []reading
}

// A reading is a number for the report: the group n_NAME of a match.
type reading struct {
	name  string
	value float64
}

// A memo finds the marks of a message and the rules that fit it and remembers
// them by the message: the ranks of a launch, and its attempts, say the same things. It
// holds at most memoSlots messages of memoBytes.
type memo struct {
	rules *RuleSet
	hits  hitSet
	seed  maphash.Seed
	slots []memoSlot
}

type memoSlot struct {
	msg     []byte
	marks   marks
	scouted bool // marks are known
	matches []match
	matched bool // matches are known
}

const (
	memoSlots = 1 << 14
	memoBytes = 512
)

func newMemo(rules *RuleSet) memo {
	return memo{rules: rules, seed: maphash.MakeSeed()}
}

// match finds the rules that fit a message, in their order. The answer is shared:
// nobody changes it.
func (m *memo) match(msg []byte) []match {
	slot := m.slot(msg)
	if slot == nil {
		return m.fitting(msg)
	}
	if !slot.matched {
		slot.matches, slot.matched = m.fitting(msg), true
	}
	return slot.matches
}

// marks says what a message may hold; known is false for one too long to remember.
func (m *memo) marks(msg []byte) (found marks, known bool) {
	slot := m.slot(msg)
	if slot == nil {
		return 0, false
	}
	if !slot.scouted {
		slot.marks, slot.scouted = lookAlone(m.rules, msg), true
	}
	return slot.marks, true
}

// slot is where a message is remembered, nil for one that is too long.
func (m *memo) slot(msg []byte) *memoSlot {
	if len(msg) > memoBytes {
		return nil
	}
	if m.slots == nil {
		m.slots = make([]memoSlot, memoSlots)
	}
	slot := &m.slots[maphash.Bytes(m.seed, msg)%memoSlots]
	if slot.msg == nil || !bytes.Equal(slot.msg, msg) {
		*slot = memoSlot{msg: append(slot.msg[:0], msg...)}
	}
	return slot
}

// fitting asks the rules whose literal stands in a message.
func (m *memo) fitting(msg []byte) (all []match) {
	m.hits.reset()
	m.rules.find(msg, &m.hits)
	m.hits.each(func(i int) {
		r := m.rules.rules[i]
		if groups, ok := r.match(msg); ok {
			all = append(all, match{rule: r, number: i, groups: groups, numbers: readings(r, msg, groups)})
		}
	})
	return all
}

// readings picks up the groups n_NAME of a match.
func readings(r *Rule, msg []byte, groups []int) (all []reading) {
	re, _ := r.pattern()
	if re == nil || groups == nil {
		return nil
	}
	for i, name := range re.SubexpNames() {
		if len(name) < 3 || name[:2] != "n_" || groups[2*i] < 0 {
			continue
		}
		if v, err := strconv.ParseFloat(string(msg[groups[2*i]:groups[2*i+1]]), 64); err == nil {
			all = append(all, reading{name: name[2:], value: v})
		}
	}
	return all
}
