package stacks

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Finding is what the stacks of several ranks come to.
type Finding struct {
	Text     string   // one sentence; "" = nothing was learnt
	Suspects []string // ranks that stand elsewhere than the large group, which waits for them
	Hung     bool     // every rank was seen twice, at the same place
	Lock     string   // kind of compile lock that a rank waits for; "" = none
}

// group are the ranks that stand at one place.
type group struct {
	place string
	ranks []string
	key   string
}

// Compare finds out what two looks at the same processes, apart by that long, come to.
// The second may be empty, and then nothing is said of what moves.
func Compare(first, second []Stack, apart time.Duration) Finding {
	var f Finding
	groups := grouped(first)
	if len(groups) == 0 {
		return f
	}
	total := 0
	for _, g := range groups {
		total += len(g.ranks)
	}
	if major := groups[0]; len(groups) > 1 && 2*len(major.ranks) > total {
		for _, g := range groups[1:] {
			f.Suspects = append(f.Suspects, g.ranks...)
		}
		slices.Sort(f.Suspects)
	}
	for _, s := range first {
		if lock := lockOf(s.main()); lock != "" {
			f.Lock = lock
		}
	}
	f.Text = sentence(groups, total)
	moved, twice := changes(first, second)
	switch {
	case len(moved) > 0:
		f.Text += fmt.Sprintf("; %s moved within %s", strings.Join(moved, ", "), apart)
	case twice:
		f.Hung = true
		f.Text += fmt.Sprintf("; the same %s later", apart)
	}
	return f
}

// grouped sorts ranks by their whole stack, the largest group first. Two groups
// at one place differ in how they came there, which is said.
func grouped(stacks []Stack) []group {
	var groups []group
	frames := map[string][]Frame{}
	for _, s := range stacks {
		if s.Tool == "" {
			continue
		}
		k := s.Tool + "\n" + key(s.main())
		frames[k] = s.main()
		i := slices.IndexFunc(groups, func(g group) bool { return g.key == k })
		if i < 0 {
			groups = append(groups, group{place: place(s.main()), key: k})
			i = len(groups) - 1
		}
		groups[i].ranks = append(groups[i].ranks, s.Rank)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return len(b.ranks) - len(a.ranks) })
	for i := range groups {
		for j := range i {
			if groups[i].place == groups[j].place {
				groups[i].place += by(frames[groups[i].key], frames[groups[j].key])
				break
			}
		}
	}
	return groups
}

// by names the first frame, from the inside, that another stack does not have.
func by(frames, others []Frame) string {
	for _, f := range frames {
		elsewhere := slices.ContainsFunc(others, func(o Frame) bool { return o.where() == f.where() })
		if !elsewhere && !f.dull() {
			return " by way of " + f.where()
		}
	}
	return " by another way"
}

// shown bounds the groups that a sentence names.
const shown = 4

func sentence(groups []group, total int) string {
	if len(groups) == 1 {
		if total == 1 {
			return fmt.Sprintf("%s in %s", groups[0].ranks[0], groups[0].place)
		}
		return fmt.Sprintf("all %d ranks in %s", total, groups[0].place)
	}
	var parts []string
	for i, g := range groups {
		switch {
		case i == shown:
			return strings.Join(parts, "; ") + fmt.Sprintf("; %d elsewhere", total-counted(groups[:shown]))
		case i == 0 && len(g.ranks) > 1:
			parts = append(parts, fmt.Sprintf("%d of %d ranks in %s", len(g.ranks), total, g.place))
		default:
			parts = append(parts, fmt.Sprintf("%s in %s", strings.Join(g.ranks, ", "), g.place))
		}
	}
	return strings.Join(parts, "; ")
}

func counted(groups []group) (n int) {
	for _, g := range groups {
		n += len(g.ranks)
	}
	return n
}

// changes compares two looks. twice: each rank of the first was seen again by
// the same tool, one that shows the program and not only where the kernel waits.
func changes(first, second []Stack) (moved []string, twice bool) {
	twice = len(first) > 0
	for _, a := range first {
		i := slices.IndexFunc(second, func(b Stack) bool { return b.ID == a.ID })
		if i < 0 || a.Tool == "" || a.Tool == "kernel" || second[i].Tool != a.Tool {
			twice = false
			continue
		}
		if key(a.main()) != key(second[i].main()) {
			moved = append(moved, a.Rank)
		}
	}
	return moved, twice && len(moved) == 0
}
