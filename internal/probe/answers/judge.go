package answers

import (
	"fmt"
	"strings"
)

// Figures are what a set of answers looks like as a whole. Those of a server
// that worked are what the next is held against.
type Figures struct {
	Answers int     `json:"answers"`
	Asked   int     `json:"asked"`   // tokens that each might have at most
	Tokens  int     `json:"tokens"`  // of all answers together
	Faulty  int     `json:"faulty"`  // answers that are wrong by themselves
	Variety float64 `json:"variety"` // share of different tokens in a stretch, mean; 0 = not known
}

// Length is the mean number of tokens of an answer.
func (f Figures) Length() float64 {
	if f.Answers == 0 {
		return 0
	}
	return float64(f.Tokens) / float64(f.Answers)
}

// Bounds of a comparison with a server that worked. Greedy texts differ from
// batch to batch, so only what no chance explains counts.
const (
	enough       = 8    // answers on both sides, at least
	lengthFactor = 2    // longer or shorter than this
	varietyLeast = 0.6  // of the variety before
	chanceMost   = 0.01 // that as many faulty answers come about with the rate before
)

// Verdict is what is to be thought of a set of answers.
type Verdict struct {
	Figures
	Corrupt bool
	Why     string // one sentence, where they are corrupt
}

// Judge looks at the answers of one server, each of asked tokens at most. base
// are the figures of the same model when it worked; nil where there are none.
func Judge(all []Answer, asked int, base *Figures) Verdict {
	v := Verdict{Figures: Figures{Answers: len(all), Asked: asked}}
	first, varied, empty := "", 0, 0
	for i, a := range all {
		v.Tokens += a.count()
		if share, ok := a.variety(); ok {
			v.Variety += share
			varied++
		}
		if fault := a.Fault(); fault != "" {
			v.Faulty++
			if first == "" {
				first = fmt.Sprintf("answer %d: %s", i+1, fault)
			}
		}
		if strings.TrimSpace(a.Text) == "" {
			empty++
		}
	}
	if varied > 0 {
		v.Variety /= float64(varied)
	}
	v.Why = v.Figures.against(base, first)
	if v.Why == "" && empty == len(all) && empty >= enough && !base.saysNothing() {
		v.Why = fmt.Sprintf("none of %d answers has any text", empty)
	}
	v.Corrupt = v.Why != ""
	return v
}

// against says what is wrong; first is the first answer that is by itself.
func (f Figures) against(base *Figures, first string) string {
	if f.Faulty > 0 && !base.explains(f) {
		return fmt.Sprintf("%d of %d, %s", f.Faulty, f.Answers, first)
	}
	if base == nil || base.Asked != f.Asked || min(base.Answers, f.Answers) < enough {
		return ""
	}
	if why := f.outside(*base, alone); why != "" {
		return why + " as in the last good start"
	}
	return ""
}

// outside says by what figures lie outside of the bounds around others.
func (f Figures) outside(base Figures, b bounds) string {
	now, before := f.Length(), base.Length()
	switch {
	case now*b.length < before || now > before*b.length:
		return fmt.Sprintf("answers have %.0f tokens, not %.0f", now, before)
	case f.Variety > 0 && f.Variety < base.Variety*b.variety:
		return fmt.Sprintf("%.0f %% of the tokens in a stretch differ, not %.0f %%", 100*f.Variety, 100*base.Variety)
	}
	return ""
}

// saysNothing: its answers ended where they began.
func (f *Figures) saysNothing() bool { return f != nil && f.Length() <= 1 }

// explains reports whether so many faulty answers are nothing new: a small or
// a base model may repeat itself by nature.
func (f *Figures) explains(now Figures) bool {
	if f == nil || f.Faulty == 0 || f.Answers == 0 {
		return false
	}
	rate := min(float64(f.Faulty)/float64(f.Answers), 0.999)
	return atLeast(now.Faulty, now.Answers, rate) > chanceMost
}
