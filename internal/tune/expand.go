package tune

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxTrials bounds a study: no night is longer.
const maxTrials = 1000

// Expand lists the trials of a study in the order of their launches: the
// baseline, then the least risky first, so that what may harm the machine comes
// when all else is measured. base holds the values that the base gives to the
// axes, as far as they are known; a trial that only repeats them is the
// baseline. It fails where there are more than maxTrials.
func (s Study) Expand(base map[string]Value, facts Facts) ([]Trial, error) {
	sets, err := s.combinations()
	if err != nil {
		return nil, err
	}
	trials := []Trial{newTrial("", nil, 0)}
	seen := map[string]bool{BaselineID: true}
	add := func(name string, set map[string]Value, risk int) {
		set = without(set, base)
		t := newTrial(name, set, max(risk, s.risk(set, base)))
		if excluded, _ := s.Excluded(t, base); !seen[t.ID] && !excluded {
			seen[t.ID] = true
			trials = append(trials, t)
		}
	}
	for _, e := range s.Trials {
		add(e.Name, e.Set, e.Risk)
	}
	for _, set := range sets {
		add("", set, 0)
	}
	slices.SortStableFunc(trials[1:], func(a, b Trial) int {
		if a.Risk != b.Risk {
			return a.Risk - b.Risk
		}
		return s.compare(a, b, base)
	})
	for i := range trials {
		trials[i].Fingerprint = s.Fingerprint(trials[i], facts)
	}
	return trials, nil
}

// combinations are the settings that the axes span.
func (s Study) combinations() ([]map[string]Value, error) {
	names := slices.Sorted(maps.Keys(s.Axes))
	if s.Search == OneAtATime {
		var sets []map[string]Value
		for _, name := range names {
			for _, v := range s.Axes[name].Values {
				sets = append(sets, map[string]Value{name: v})
			}
		}
		return sets, tooMany(len(sets))
	}
	if len(names) == 0 {
		return nil, nil
	}
	sets := []map[string]Value{{}}
	for _, name := range names {
		var next []map[string]Value
		for _, set := range sets {
			for _, v := range s.Axes[name].Values {
				wider := maps.Clone(set)
				wider[name] = v
				next = append(next, wider)
			}
			if err := tooMany(len(next)); err != nil {
				return nil, err
			}
		}
		sets = next
	}
	return sets, nil
}

func tooMany(n int) error {
	if n > maxTrials {
		return fmt.Errorf("cannot plan more than %d trials: take values from the axes, or search one-at-a-time", maxTrials)
	}
	return nil
}

// without drops the settings that the base has anyway.
func without(set, base map[string]Value) map[string]Value {
	kept := maps.Clone(set)
	maps.DeleteFunc(kept, func(name string, v Value) bool {
		b, known := base[name]
		return known && b == v
	})
	return kept
}

// Excluded tells whether an [[exclude]] of the study takes a trial out, and why.
func (s Study) Excluded(t Trial, base map[string]Value) (out bool, why string) {
	for _, e := range s.Excludes {
		all := len(e.Set) > 0
		for name, v := range e.Set {
			got, known := setting(t, base, name)
			all = all && known && got == v
		}
		if all {
			return true, e.Why
		}
	}
	return false, ""
}

// setting is what a trial runs with on an axis; known is false where neither it
// nor the base says.
func setting(t Trial, base map[string]Value, axis string) (v Value, known bool) {
	if v, known = t.Set[axis]; known {
		return v, true
	}
	v, known = base[axis]
	return v, known
}

// risk is how likely settings harm more than their own launch: what a person
// said, else by what they change.
func (s Study) risk(set, base map[string]Value) int {
	risk := 0
	for name, v := range set {
		risk = max(risk, s.Axes[name].Risk, s.natural(name, v, base))
	}
	return risk
}

// natural is the risk that a setting has by itself: new code is riskier than
// more memory, more memory than less.
func (s Study) natural(axis string, v Value, base map[string]Value) int {
	switch {
	case axis == PatchesAxis:
		return 3
	case s.CategoryOf(axis) != "":
		return 2
	}
	from, known := base[axis].Number()
	to, isNumber := v.Number()
	switch order := s.Order(axis); {
	case order == "" || known && isNumber && to == from:
		return 0
	case !known || !isNumber:
		return 1
	case (to > from) != (order == MemoryDown || order == GPUsUp):
		return 1
	}
	return 0
}

// compare puts the trial first that takes less of what an axis is ordered by,
// so that a failure can still skip those that take more.
func (s Study) compare(a, b Trial, base map[string]Value) int {
	for _, name := range slices.Sorted(maps.Keys(s.Axes)) {
		v, okV := setting(a, base, name)
		w, okW := setting(b, base, name)
		switch {
		case okV != okW:
			return boolean(okW) - boolean(okV)
		case v != w:
			return s.compareOn(name, v, w)
		}
	}
	return strings.Compare(a.Name+a.ID, b.Name+b.ID)
}

// compareOn orders two values of an axis: what is no number first, as text,
// then numbers by what they take.
func (s Study) compareOn(axis string, v, w Value) int {
	x, okX := v.Number()
	y, okY := w.Number()
	switch order := s.Order(axis); {
	case okX != okY:
		return boolean(okX) - boolean(okY)
	case !okX:
		return strings.Compare(v.String(), w.String())
	case order == MemoryDown || order == GPUsUp:
		x, y = y, x
	}
	return cmp.Compare(x, y)
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
