package tune

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// taught tells whether a failed trial shows that another one fails too, and
// how. Every axis that the lesson does not speak of must be equal, and no axis
// may be unknown on one side only.
func (n *Night) taught(failed Trial, c Class, e Ended, other Trial) (text string, yes bool) {
	switch lesson := c.teaches; {
	case !n.plan.Study.Prune || failed.Baseline() || other.ID == failed.ID:
		return "", false
	case lesson.setting:
		return n.sameSetting(failed, e, other)
	case len(lesson.categories) > 0:
		return n.sameCategory(failed, lesson, other)
	case len(lesson.orders) > 0:
		return n.dominated(failed, lesson, other)
	}
	return "", false
}

// dominated: on axes with an order the other takes as much or more (or less) of
// what was missing, and is equal on all others.
func (n *Night) dominated(failed Trial, l lesson, other Trial) (text string, yes bool) {
	var differs []string
	for _, axis := range axesOf(failed, other) {
		v, okV := setting(failed, n.base(), axis)
		w, okW := setting(other, n.base(), axis)
		if okV && okW && v == w {
			continue
		}
		side := l.orders[n.plan.Study.Order(axis)]
		x, isX := v.Number()
		y, isY := w.Number()
		if side == 0 || !isX || !isY || (y-x)*float64(side) < 0 {
			return "", false
		}
		differs = append(differs, fmt.Sprintf("%s %s is no better than %s", axis, w, v))
	}
	return strings.Join(differs, ", ") + ", all else equal", len(differs) > 0
}

// sameCategory: what chooses kernels, quantization or KV type was changed, and
// the other chooses the same.
func (n *Night) sameCategory(failed Trial, l lesson, other Trial) (text string, yes bool) {
	var same []string
	for _, axis := range axesOf(failed, other) {
		if !slices.Contains(l.categories, n.plan.Study.CategoryOf(axis)) {
			continue
		}
		v, okV := setting(failed, n.base(), axis)
		w, okW := setting(other, n.base(), axis)
		if okV != okW || v != w {
			return "", false
		}
		if _, changed := failed.Set[axis]; changed {
			same = append(same, settingsText(map[string]Value{axis: v}))
		}
	}
	return "it has " + strings.Join(same, ", ") + " too", len(same) > 0
}

// sameSetting: the axis that the server's words blame, or the only one that the
// trial changes, has the same value.
func (n *Night) sameSetting(failed Trial, e Ended, other Trial) (text string, yes bool) {
	blamed := slices.Sorted(maps.Keys(failed.Set))
	if len(blamed) > 1 {
		blamed = slices.DeleteFunc(blamed, func(axis string) bool { return !blames(e.Text, axis) })
	}
	for _, axis := range blamed {
		if w, ok := other.Set[axis]; !ok || w != failed.Set[axis] {
			return "", false
		}
	}
	if len(blamed) == 0 {
		return "", false
	}
	return "it has " + settingsText(only(failed.Set, blamed)) + " too", true
}

// blames reports whether an error's words name a flag or variable, as it is
// written on a command line or as Python spells it.
func blames(text, axis string) bool {
	word := strings.TrimLeft(axis, "-$")
	return wordIn(text, word) || wordIn(text, strings.ReplaceAll(word, "-", "_"))
}

// wordIn finds a word that is no part of a longer one.
func wordIn(text, word string) bool {
	part := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] == '_' || text[i] >= '0' && text[i] <= '9' || text[i] >= 'a' && text[i] <= 'z' || text[i] >= 'A' && text[i] <= 'Z')
	}
	for from := 0; word != ""; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			break
		}
		i += from
		before, after := strings.TrimRight(text[:i], "-"), i+len(word)
		hyphen := after < len(text) && text[after] == '-'
		if !part(len(before)-1) && !part(after) && !hyphen {
			return true
		}
		from = i + 1
	}
	return false
}

func only(set map[string]Value, names []string) map[string]Value {
	part := map[string]Value{}
	for _, name := range names {
		part[name] = set[name]
	}
	return part
}

// axesOf are the names that a trial, which is not the baseline, or another sets.
func axesOf(a, b Trial) []string {
	all := maps.Clone(a.Set)
	maps.Copy(all, b.Set)
	return slices.Sorted(maps.Keys(all))
}

// base are the values that the base gives to the axes.
func (n *Night) base() map[string]Value { return n.plan.Base }
