package answers

import (
	"slices"
	"strings"
	"testing"
)

// A token that is no whole word shows where only texts are told.
func TestRunOfAPiece(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		faulty bool
	}{
		"a piece of a word":      {"It began " + strings.Repeat("ation", 200), true},
		"no blanks at all":       {strings.Repeat("河流", 128), true},
		"after other words":      {"was 河" + strings.Repeat("ab", 128), true},
		"one character":          {strings.Repeat("ab ", 10) + strings.Repeat("!", 256), true},
		"a ruled line":           {strings.Repeat("=-", 60) + " " + strings.Repeat("=-", 60), false},
		"not often enough":       {strings.Repeat("incomprehensib", 31), false},
		"a little too short":     {strings.Repeat("ab", 127), false},
		"long, and none repeats": {strings.Repeat("abcdefghijklmnopqrst", 40), false},
	} {
		if got := (Answer{Text: c.text}).Fault(); (got != "") != c.faulty {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := (Answer{Text: strings.Repeat("ab", 128), Tokens: []int{1, 2, 3}}).Fault(); got != "" {
		t.Errorf("tokens that differ: %q", got)
	}
}

// A model that ends each answer before it begins says nothing, which is no sound
// answer; one that does it now and then may have its reasons.
func TestNoTextAtAll(t *testing.T) {
	silent := slices.Repeat([]Answer{{Text: " ", Count: 1}}, enough)
	if v := Judge(silent, 64, nil); !v.Corrupt || !strings.Contains(v.Why, "none of 8 answers has any text") {
		t.Errorf("got %+v", v)
	}
	if v := Judge(silent, 64, &Figures{Answers: 8, Asked: 64, Tokens: 8}); v.Corrupt {
		t.Errorf("as ever: %+v", v)
	}
	if v := Judge(silent[1:], 64, nil); v.Corrupt {
		t.Errorf("few answers: %+v", v)
	}
	silent[3] = Answer{Text: "So it is.", Count: 4}
	if v := Judge(silent, 64, nil); v.Corrupt {
		t.Errorf("one that says something: %+v", v)
	}
}
