package phases

import (
	"bytes"
	"regexp/syntax"
)

// A need is a set of texts of which every text that an expression matches holds
// at least one. To look for them is a hundred times faster than to run the
// expression, and most lines that hold a rule's literal and do not fit the rule
// hold none of them.
type need [][]byte

const (
	maxNeeds    = 16 // texts of one need
	maxNeedSize = 64 // bytes of one
)

// needOf finds what an expression needs; nil where it may match anything.
func needOf(expression string) need {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	return best(needs(tree.Simplify()))
}

// met tells whether a text holds what is needed.
func (n need) met(text []byte) bool {
	for _, one := range n {
		if bytes.Contains(text, one) {
			return true
		}
	}
	return len(n) == 0
}

// needs finds what a part of an expression needs. Whole says that the part
// matches these very texts and nothing else, so that they may be joined to those
// of its neighbours.
func needs(part *syntax.Regexp) (found need, whole bool) {
	switch part.Op {
	case syntax.OpLiteral:
		if part.Flags&syntax.FoldCase == 0 {
			return need{[]byte(string(part.Rune))}, true
		}
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return need{{}}, true
	case syntax.OpCapture:
		return needs(part.Sub[0])
	case syntax.OpPlus:
		found, _ = needs(part.Sub[0])
		return found, false
	case syntax.OpAlternate:
		return anyOf(part.Sub)
	case syntax.OpConcat:
		return allOf(part.Sub)
	}
	return nil, false
}

// anyOf joins what the branches of an alternative need.
func anyOf(branches []*syntax.Regexp) (all need, whole bool) {
	whole = true
	for _, branch := range branches {
		found, exact := needs(branch)
		whole = whole && exact
		if all = append(all, found...); len(found) == 0 || len(all) > maxNeeds {
			return nil, false
		}
	}
	return all, whole
}

// allOf finds the need of a sequence: of the stretches of whole parts, and of
// the parts that are not whole, the one that says most.
func allOf(parts []*syntax.Regexp) (found need, whole bool) {
	whole = true
	stretch := need{{}}
	for _, part := range parts {
		next, exact := needs(part)
		joined := stretch.join(next)
		if exact && joined != nil {
			stretch = joined
			continue
		}
		whole = false
		found = better(better(found, stretch), next)
		stretch = need{{}}
		if exact {
			stretch = next
		}
	}
	if whole {
		return stretch, true
	}
	return better(found, stretch), false
}

// join puts every text of another need behind every one of this; nil where that
// is too much.
func (n need) join(other need) (joined need) {
	if len(n)*len(other) > maxNeeds {
		return nil
	}
	for _, a := range n {
		for _, b := range other {
			if len(a)+len(b) > maxNeedSize {
				return nil
			}
			joined = append(joined, append(append([]byte(nil), a...), b...))
		}
	}
	return joined
}

// better is the need whose shortest text is longer.
func better(a, b need) need {
	if b.shortest() > a.shortest() {
		return b
	}
	return a
}

// best drops a need that is too short to tell anything.
func best(n need, _ bool) need {
	if n.shortest() < 2 {
		return nil
	}
	return n
}

func (n need) shortest() int {
	if len(n) == 0 {
		return 0
	}
	least := len(n[0])
	for _, one := range n[1:] {
		least = min(least, len(one))
	}
	return least
}
