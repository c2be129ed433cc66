package visible

import (
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"plain, 没有, é, |███  |":          "plain, 没有, é, |███  |",
		"a\x1b[31mb\x1b]0;x\a":           "a[31mb]0;x",
		"ab\b\bok\x00\x7f":               "abok",
		"a\r\nsglaunch: ready\tb\u2028c": "a  sglaunch: ready b c",
		"a\x9b2Jb\u009b2Jc\u0085d":       "a?2Jb2Jc d",
		"a\u202egnp\u2066x\u200bb\ufeff": "agnpxb",
		"a\u00a0b":                       "a b",
	} {
		if got := Line(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestLineShowsAll: whatever the bytes are, all that is left can be seen, and is
// left the second time.
func TestLineShowsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		got := Line(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "runes"))
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q holds %q", got, r)
			}
		}
		if Line(got) != got {
			t.Fatalf("%q becomes %q", got, Line(got))
		}
	})
}

func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"a\x1b[1m\r\n\n\u202eb\n": "a[1m \n\nb\n",
	} {
		if got := Lines(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"four":                 "four",
		"fives":                "five...",
		"aéé":                  "aéé"[:3] + "...",
		"\xae\xae\xae\xae\xae": "...",
	} {
		if got := Clip(text, 4); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSource(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"\tx = 'é' # it's \\n, 没有":        "\tx = 'é' # it's \\n, 没有",
		"a\x1b[2Jb\r":                     `a\x1b[2Jb\r`,
		"if user\u202e#\u2066:\u00a0\xff": `if user\u202e#\u2066:\u00a0\xff`,
	} {
		if got := Source(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
