package answers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Sample is what is kept of a server's answers to Prompts, to hold those of
// another server of the same model against.
type Sample struct {
	Figures
	Sums  []string `json:"sums"`            // of each answer: equal where the texts are
	Fault string   `json:"fault,omitempty"` // of the answers that are wrong by themselves
}

// Keep makes a sample of answers, each of asked tokens at most.
func Keep(all []Answer, asked int) Sample {
	v := Judge(all, asked, nil)
	s := Sample{Figures: v.Figures, Fault: v.Why}
	for _, a := range all {
		sum := sha256.Sum256([]byte(a.Text))
		s.Sums = append(s.Sums, hex.EncodeToString(sum[:4]))
	}
	return s
}

// Likeness is how a sample compares with those of launches of one other server.
type Likeness struct {
	Same    float64 // share of its answers that are the same to the last character, over all of the others
	Self    float64 // the same among the others themselves; 0 where there are not two
	Known   bool    // there are two
	Unlike  bool    // fewer are the same than the others' own scatter explains
	Length  float64 // mean length, as a ratio; 0 = not known
	Variety float64 // of different tokens in a stretch, as a ratio; 0 = not known
}

// bounds of how far a sample may lie from the others before that is a fault.
type bounds struct{ length, variety float64 }

// Where a server answers no more unlike the others than they do each other, only
// the bounds of Judge are a fault. Where it does, less is enough: then two
// witnesses say the same. Alone, that answers differ is no fault: batches, kernels
// and number formats round otherwise, and greedy texts part at the first near tie.
var (
	alone   = bounds{lengthFactor, varietyLeast}
	another = bounds{1.5, 0.8}
)

// Compare holds a sample against those of others; answers are compared prompt by
// prompt.
func (s Sample) Compare(others []Sample) (l Likeness) {
	same, of := 0, 0
	for _, o := range others {
		k, n := s.same(o)
		same, of = same+k, of+n
	}
	if of == 0 {
		return Likeness{}
	}
	l.Same = float64(same) / float64(of)
	if all := Pool(others); all.Asked == s.Asked && all.Length() > 0 {
		l.Length = s.Length() / all.Length()
		if all.Variety > 0 {
			l.Variety = s.Variety / all.Variety
		}
	}
	own, ownOf := 0, 0
	for i := range others {
		for _, o := range others[i+1:] {
			k, n := others[i].same(o)
			own, ownOf = own+k, ownOf+n
		}
	}
	if ownOf == 0 {
		return l
	}
	l.Known, l.Self = true, float64(own)/float64(ownOf)
	rate := float64(own+1) / float64(ownOf+2) // of few that are all the same, the next may differ
	n := len(s.Sums)
	l.Unlike = 1-atLeast(int(l.Same*float64(n)+0.5)+1, n, rate) < chanceMost
	return l
}

// same counts the answers of two samples that are the same.
func (s Sample) same(o Sample) (same, of int) {
	if s.Asked != o.Asked {
		return 0, 0
	}
	for i := range min(len(s.Sums), len(o.Sums)) {
		of++
		if s.Sums[i] == o.Sums[i] {
			same++
		}
	}
	return same, of
}

// Pool are the figures of several samples together.
func Pool(all []Sample) (f Figures) {
	varied := 0
	for _, s := range all {
		f.Answers, f.Tokens, f.Faulty, f.Asked = f.Answers+s.Answers, f.Tokens+s.Tokens, f.Faulty+s.Faulty, s.Asked
		if s.Variety > 0 {
			f.Variety += s.Variety
			varied++
		}
	}
	f.Variety /= float64(max(1, varied))
	return f
}

// Worse says by what a sample is clearly worse than those of the others; "" =
// nothing shows. Without others nothing can be said, and what is wrong with some
// of theirs may be wrong with some of its own.
func (s Sample) Worse(others []Sample) string {
	base := Pool(others)
	if base.Answers == 0 {
		return ""
	}
	rate := float64(base.Faulty+1) / float64(base.Answers+2) // that none of a few was wrong does not say that none ever is
	if s.Faulty > 0 && atLeast(s.Faulty, s.Answers, rate) < chanceMost {
		return fmt.Sprintf("%s; of the others' %d of %d", s.Fault, base.Faulty, base.Answers)
	}
	if base.Asked != s.Asked || s.Answers < enough {
		return ""
	}
	within := alone
	if s.Compare(others).Unlike {
		within = another
	}
	return s.outside(base, within)
}
