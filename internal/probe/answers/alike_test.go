package answers

import (
	"fmt"
	"slices"
	"testing"
)

// sample is one of n answers, of which the first so many are others than usual.
func sample(n, differ int, a Answer) Sample {
	var all []Answer
	for i := range n {
		own := a
		own.Text = fmt.Sprint("answer ", i)
		if i < differ {
			own.Text += " told otherwise"
		}
		all = append(all, own)
	}
	return Keep(all, 256)
}

func TestAlike(t *testing.T) {
	usual := of(200, 40)
	exact := []Sample{sample(24, 0, usual), sample(24, 0, usual)}
	loose := []Sample{sample(24, 0, usual), sample(24, 12, usual), sample(24, 6, usual)}
	for name, c := range map[string]struct {
		mine   Sample
		others []Sample
		want   string
	}{
		"nobody to compare with":    {sample(24, 0, usual), nil, "same 0.00 self 0.00 known false unlike false"},
		"one launch has no self":    {sample(24, 6, usual), exact[:1], "same 0.75 self 0.00 known false unlike false"},
		"the same":                  {sample(24, 0, usual), exact, "same 1.00 self 1.00 known true unlike false"},
		"one differs, as it may":    {sample(24, 1, usual), exact, "same 0.96 self 1.00 known true unlike false"},
		"all differ":                {sample(24, 24, usual), exact, "same 0.00 self 1.00 known true unlike true"},
		"the others differ as well": {sample(24, 14, usual), loose, "same 0.67 self 0.67 known true unlike false"},
		"asked for another length":  {Keep(many(24, usual), 1024), exact, "same 0.00 self 0.00 known false unlike false"},
	} {
		l := c.mine.Compare(c.others)
		if got := fmt.Sprintf("same %.2f self %.2f known %t unlike %t", l.Same, l.Self, l.Known, l.Unlike); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// That answers differ is no fault by itself; it is a second witness.
func TestWorse(t *testing.T) {
	usual := of(200, 40)
	exact := []Sample{sample(24, 0, usual), sample(24, 0, usual)}
	run := usual
	run.Tokens = append(slices.Clone(usual.Tokens), slices.Repeat([]int{99}, longestRun)...)
	faulty := func(n int) Sample {
		return Keep(append(many(24-n, usual), many(n, run)...), 256)
	}
	for name, c := range map[string]struct {
		mine   Sample
		others []Sample
		worse  bool
	}{
		"all differ":                           {sample(24, 24, usual), exact, false},
		"shorter":                              {sample(24, 0, of(120, 40)), exact, false},
		"shorter, and all differ":              {sample(24, 24, of(120, 40)), exact, true},
		"less varied":                          {sample(24, 0, of(200, 30)), exact, false},
		"less varied, and all differ":          {sample(24, 24, of(200, 30)), exact, true},
		"less than half as long":               {sample(24, 0, of(90, 40)), exact, true},
		"much less varied":                     {sample(24, 0, of(200, 20)), exact, true},
		"one is wrong by itself":               {faulty(1), exact, false},
		"many are wrong by themselves":         {faulty(8), exact, true},
		"as many as of the others":             {faulty(8), []Sample{faulty(7), faulty(9)}, false},
		"nobody to compare with":               {faulty(24), nil, false},
		"one launch to compare with is enough": {sample(24, 0, of(90, 40)), exact[:1], true},
		"too few answers":                      {sample(7, 7, of(90, 40)), exact, false},
	} {
		if why := c.mine.Worse(c.others); (why != "") != c.worse {
			t.Errorf("%s: %q", name, why)
		}
	}
}
