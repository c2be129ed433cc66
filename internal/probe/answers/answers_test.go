package answers

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// needed is how many answers show a fault that spoils the share rate of them
// at least once with the given confidence.
func needed(rate, confidence float64) int {
	return int(math.Ceil(math.Log(1-confidence) / math.Log(1-rate)))
}

// The figures that docs and defaults speak of.
func TestHowManyAnswersSeeAFault(t *testing.T) {
	for _, c := range []struct {
		rate float64
		want int
	}{{0.04, 74}, {0.19, 15}, {0.5, 5}} {
		if got := needed(c.rate, Confidence); got != c.want {
			t.Errorf("a fault of %.0f %% takes %d answers, want %d", 100*c.rate, got, c.want)
		}
	}
	if got := 1 - math.Pow(1-0.04, 75); got < Confidence {
		t.Errorf("75 answers see a fault of 4 %% with %.3f", got)
	}
}

func TestNeededAndSmallestAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.001, 0.9).Draw(t, "rate")
		n := needed(rate, Confidence)
		if Smallest(n, Confidence) > rate+1e-9 || n > 1 && Smallest(n-1, Confidence) < rate-1e-9 {
			t.Errorf("%d answers are needed for %v, and see %v", n, rate, Smallest(n, Confidence))
		}
	})
}

func TestAtLeastIsAChance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		rate := rapid.Float64Range(0, 0.99).Draw(t, "rate")
		p := atLeast(k, n, rate)
		if p < 0 || p > 1 || k > 0 && p > atLeast(k-1, n, rate)+1e-9 {
			t.Errorf("the chance of %d of %d at %v is %v", k, n, rate, p)
		}
	})
	if p := atLeast(1, 75, 0.04); math.Abs(p-(1-math.Pow(0.96, 75))) > 1e-12 {
		t.Errorf("got %v", p)
	}
}

// sound draws an answer in which no token follows itself.
func sound(t *rapid.T) Answer {
	n := rapid.IntRange(0, 200).Draw(t, "tokens")
	a := Answer{Count: n, Text: strings.TrimSpace(strings.Repeat("river stone ", n/2+1))}
	for i := range n {
		id := rapid.IntRange(0, 1000).Draw(t, "token")*2 + i%2
		a.Tokens = append(a.Tokens, id)
		a.Logprobs = append(a.Logprobs, -rapid.Float64Range(0, 20).Draw(t, "logprob"))
	}
	return a
}

func TestRunOfOneToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := sound(t)
		if f := a.Fault(); f != "" {
			t.Fatalf("a sound answer: %s", f)
		}
		length := rapid.IntRange(2, 80).Draw(t, "run")
		at := rapid.IntRange(0, len(a.Tokens)).Draw(t, "at")
		run := slices.Repeat([]int{1 << 20}, length)
		a.Tokens = slices.Insert(a.Tokens, at, run...)
		if got := a.Fault() != ""; got != (length >= longestRun) {
			t.Errorf("a run of %d at %d of %d: faulty is %v", length, at, len(a.Tokens), got)
		}
	})
}

// The bounds that docs/answers.md speaks of.
func TestBoundOfARun(t *testing.T) {
	for length, faulty := range map[int]bool{31: false, 32: true} {
		a := Answer{Text: "x", Tokens: slices.Repeat([]int{7}, length)}
		if got := a.Fault(); (got != "") != faulty {
			t.Errorf("a run of %d: %q", length, got)
		}
	}
}

func TestOneProbabilityThatIsNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := sound(t)
		bad := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(t, "bad")
		at := rapid.IntRange(0, len(a.Logprobs)).Draw(t, "at")
		a.Logprobs = slices.Insert(a.Logprobs, at, bad)
		if a.Fault() == "" {
			t.Errorf("%v among %d goes unseen", bad, len(a.Logprobs))
		}
	})
}

func TestFaults(t *testing.T) {
	prose := "The keeper climbed the stairs. Später, на море, 灯台は光る。 ``` x = [0, 0, 0] ``` " + strings.Repeat("-", 80)
	for name, c := range map[string]struct {
		answer Answer
		faulty bool
	}{
		"empty":                      {Answer{}, false},
		"prose in many scripts":      {Answer{Text: prose, Count: 60}, false},
		"a character cut at the end": {Answer{Text: prose + "\ufffd\ufffd", Count: 60}, false},
		"one word":                   {Answer{Text: strings.Repeat("the ", 40), Count: 40}, true},
		"one word, not for long":     {Answer{Text: strings.Repeat("no ", 31), Count: 31}, false},
		"one character":              {Answer{Text: strings.Repeat("!", 300), Count: 300}, true},
		"not UTF-8":                  {Answer{Text: "ab" + strings.Repeat("\xff", 9), Count: 9}, true},
		"control characters":         {Answer{Text: strings.Repeat("a\x00\x01", 8), Count: 9}, true},
		"tokens without text":        {Answer{Tokens: []int{1, 2, 3}, Count: 40}, true},
		"few tokens without text":    {Answer{Tokens: []int{1, 2, 3}, Count: 3}, false},
		"two tokens in turn":         {Answer{Text: "x", Tokens: slices.Repeat([]int{1, 2}, 50)}, false},
	} {
		if got := c.answer.Fault(); (got != "") != c.faulty {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func many(n int, a Answer) []Answer { return slices.Repeat([]Answer{a}, n) }

// of is an answer of n tokens of which each stretch has so many different ones.
func of(n, different int) Answer {
	a := Answer{Text: "x", Count: n}
	for i := range n {
		a.Tokens = append(a.Tokens, i%different)
	}
	return a
}

func TestHeldAgainstTheLastGoodStart(t *testing.T) {
	base := Judge(many(20, of(512, 40)), 1024, nil)
	if base.Corrupt || base.Length() != 512 || base.Variety != 40.0/64 {
		t.Fatalf("got %+v", base)
	}
	tired := base.Figures // a model that repeats itself now and then
	tired.Faulty = 4
	run := of(512, 40)
	run.Tokens = append(run.Tokens, slices.Repeat([]int{99}, longestRun)...)
	for name, c := range map[string]struct {
		all     []Answer
		base    *Figures
		corrupt bool
	}{
		"the same":                          {many(20, of(512, 40)), &base.Figures, false},
		"nothing to compare with":           {many(20, of(100, 9)), nil, false},
		"half as long":                      {many(20, of(255, 40)), &base.Figures, true},
		"a little shorter":                  {many(20, of(300, 40)), &base.Figures, false},
		"twice as long":                     {many(20, of(1025, 40)), &base.Figures, true},
		"less varied":                       {many(20, of(512, 20)), &base.Figures, true},
		"too few to compare":                {many(7, of(100, 9)), &base.Figures, false},
		"asked for otherwise":               {many(20, of(100, 9)), &Figures{Answers: 20, Asked: 64, Tokens: 20 * 60, Variety: 0.9}, false},
		"one of twenty":                     {append(many(19, of(512, 40)), run), &base.Figures, true},
		"one of twenty, nothing to compare": {append(many(19, of(512, 40)), run), nil, true},
		"as many as ever":                   {append(many(16, of(512, 40)), many(4, run)...), &tired, false},
		"more than ever":                    {append(many(6, of(512, 40)), many(14, run)...), &tired, true},
		"no answer at all":                  {nil, &base.Figures, false},
	} {
		if v := Judge(c.all, 1024, c.base); v.Corrupt != c.corrupt || v.Corrupt != (v.Why != "") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestJudgeTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Answer {
			return Answer{Text: rapid.String().Draw(t, "text"), Count: rapid.IntRange(0, 99).Draw(t, "count"),
				Tokens: rapid.SliceOfN(rapid.IntRange(0, 3), 0, 99).Draw(t, "tokens")}
		}), 0, 12).Draw(t, "answers")
		v := Judge(all, 64, nil)
		if again := Judge(all, 64, nil); again != v {
			t.Errorf("%+v and %+v", v, again)
		}
		if v.Corrupt != (v.Faulty > 0) {
			t.Errorf("%+v with nothing to compare with", v)
		}
	})
}

func TestPrompts(t *testing.T) {
	all := Prompts(200)
	seen := map[string]bool{}
	for _, p := range all {
		if seen[p] || !utf8.ValidString(p) || len(p) < 60 || strings.TrimSpace(p) != p {
			t.Errorf("%q is short, not new or not clean", p)
		}
		seen[p] = true
	}
	if len(prompts) < 20 {
		t.Errorf("%d prompts are no variety", len(prompts))
	}
}

func FuzzJudge(f *testing.F) {
	f.Add("the the the", 3)
	f.Fuzz(func(t *testing.T, text string, count int) {
		Judge([]Answer{{Text: text, Count: count}}, count, &Figures{Answers: count, Tokens: count, Asked: count})
	})
}
