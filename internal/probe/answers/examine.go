package answers

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Answer is one generation at temperature 0, as far as the server tells it.
type Answer struct {
	Text     string
	Tokens   []int     // ids in their order; nil: not told
	Count    int       // of tokens
	Logprobs []float64 // of the tokens; NaN where the server gave none; nil: not told
	Failed   string    // how the server failed at it instead; "" = it did not
}

// Bounds of what a sound answer may look like.
const (
	longestRun      = 32  // of one token, or of one word where tokens are not told
	longestRunes    = 256 // of one character or piece of a word, where tokens are not told: a ruled line is shorter
	longestPiece    = 16  // characters of a token that is only a piece of a word
	leastGarbled    = 8   // characters that are none; fewer may be one cut at the end
	garbledShare    = 20  // one in so many
	wordlessAnswers = 32  // tokens that a text must have something to show for
)

// Fault says what is wrong with an answer by itself; "" = nothing that shows.
func (a Answer) Fault() string {
	if a.Failed != "" {
		return a.Failed
	}
	if i := notFinite(a.Logprobs); i >= 0 {
		return fmt.Sprintf("the probability of token %d is no number", i+1)
	}
	if n := a.run(); n != "" {
		return n
	}
	if n := garbled(a.Text); n >= leastGarbled && n*garbledShare >= utf8.RuneCountInString(a.Text) {
		return fmt.Sprintf("%d characters of its text are none", n)
	}
	if a.count() >= wordlessAnswers && strings.TrimSpace(a.Text) == "" {
		return fmt.Sprintf("%d tokens without any text", a.count())
	}
	return ""
}

func (a Answer) count() int { return max(a.Count, len(a.Tokens)) }

func notFinite(logprobs []float64) int {
	for i, p := range logprobs {
		if math.IsNaN(p) || math.IsInf(p, 0) {
			return i
		}
	}
	return -1
}

// run finds one token that repeats itself.
func (a Answer) run() string {
	if len(a.Tokens) > 0 {
		if n, at := longest(a.Tokens); n >= longestRun {
			return fmt.Sprintf("one token %d times in a row from token %d on", n, at+1)
		}
		return ""
	}
	if n, at := longest(strings.Fields(a.Text)); n >= longestRun {
		return fmt.Sprintf("one word %d times in a row from word %d on", n, at+1)
	}
	if n, at := longest([]rune(a.Text)); n >= longestRunes {
		return fmt.Sprintf("one character %d times in a row from character %d on", n, at+1)
	}
	for i, word := range strings.Fields(a.Text) {
		if n, size := pieces([]rune(word)); n >= longestRun && n*size >= longestRunes {
			return fmt.Sprintf("one piece of %d characters %d times in a row in word %d", size, n, i+1)
		}
	}
	return ""
}

// pieces finds the piece of a word that repeats itself over the longest stretch: a
// token need be no whole word, and many scripts have no blanks.
func pieces(word []rune) (n, size int) {
	for p := 1; p <= min(longestPiece, len(word)/longestRun); p++ {
		stretch := p
		for i := p; i < len(word); i++ {
			if stretch++; word[i] != word[i-p] {
				stretch = p
			}
			if stretch/p*p > n*size {
				n, size = stretch/p, p
			}
		}
	}
	return n, size
}

// longest is the longest run of equal elements, and where it begins.
func longest[T comparable](all []T) (n, at int) {
	begin := 0
	for i := range all {
		if all[i] != all[begin] {
			begin = i
		}
		if i+1-begin > n {
			n, at = i+1-begin, begin
		}
	}
	return n, at
}

// garbled counts characters that no text holds: what was not UTF-8, control
// characters, and characters that are not assigned or private.
func garbled(text string) (n int) {
	for _, r := range text {
		if r == utf8.RuneError || unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Co, r) {
			n++
		}
	}
	return n
}

// window is over how many tokens variety is counted: so it does not depend on
// how long an answer is.
const window = 64

// variety is the share of different tokens (words, where tokens are not told)
// in each stretch of the answer, as a mean; ok is false for an answer that is
// too short to tell.
func (a Answer) variety() (share float64, ok bool) {
	if len(a.Tokens) > 0 {
		return varietyOf(a.Tokens)
	}
	return varietyOf(strings.Fields(a.Text))
}

func varietyOf[T comparable](all []T) (float64, bool) {
	if len(all) < window {
		return 0, false
	}
	sum, n := 0.0, 0
	for ; len(all) >= window; all = all[window:] {
		different := map[T]bool{}
		for _, t := range all[:window] {
			different[t] = true
		}
		sum += float64(len(different)) / window
		n++
	}
	return sum / float64(n), true
}
