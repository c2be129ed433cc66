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

// A memo finds the rules that fit a message and remembers them by the
// message: the ranks of a launch, and its attempts, say the same things. It
// holds at most memoSlots messages of memoBytes.
type memo struct {
	rules *RuleSet
	hits  hitSet
	seed  maphash.Seed
	slots []memoSlot
}

type memoSlot struct {
	msg     []byte
	matches []match
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
	if len(msg) > memoBytes {
		return m.fitting(msg)
	}
	if m.slots == nil {
		m.slots = make([]memoSlot, memoSlots)
	}
	slot := &m.slots[maphash.Bytes(m.seed, msg)%memoSlots]
	if slot.msg == nil || !bytes.Equal(slot.msg, msg) {
		slot.msg = append(slot.msg[:0], msg...)
		slot.matches = m.fitting(msg)
	}
	return slot.matches
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
