package shim

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestJournalMakesLines(t *testing.T) {
	bar := func(states ...string) string { return "\r" + strings.Join(states, "\r") }
	cases := map[string]struct{ in, want string }{
		"plain":                 {"one\ntwo\n", "one\ntwo\n"},
		"unfinished":            {"one\ntw", "one\ntw\n"},
		"empty lines":           {"\n\na\n", "\n\na\n"},
		"bar moves on":          {bar("  0%|  | 0/2", " 50%|# | 1/2", "100%|##| 2/2") + "\nnext\n", "100%|##| 2/2\nnext\n"},
		"end of line is \\r\\n": {"one\r\ntwo\r\n", "one\ntwo\n"},
		"message glued":         {bar(" 50%|# | 1/2") + "[2026-02-19 05:52:10 TP0] hello\n", " 50%|# | 1/2\n[2026-02-19 05:52:10 TP0] hello\n"},
		"message instead":       {bar(" 50%|# | 1/2", "hello\n"), " 50%|# | 1/2\nhello\n"},
		"bar at the end":        {bar(" 50%|# | 1/2"), " 50%|# | 1/2\n"},
		"stamp, but no bar":     {"see [2026-02-19 05:52:10] there\n", "see [2026-02-19 05:52:10] there\n"},
	}
	for name, c := range cases {
		j := &journald{}
		got := append(j.pass([]byte(c.in), time.Unix(0, 0)), j.rest()...)
		if string(got) != c.want {
			t.Errorf("%s: %q gives %q, want %q", name, c.in, got, c.want)
		}
	}
}

func TestJournalShowsALongBarNowAndThen(t *testing.T) {
	j := &journald{}
	var got []byte
	for second := range 100 {
		got = append(got, j.pass([]byte("\r 50%|# |"), time.Unix(int64(second), 0))...)
	}
	if n := bytes.Count(got, []byte("\n")); n != 3 {
		t.Errorf("%d lines in 100 s: %q", n, got)
	}
}

// The same bytes make the same lines, however they are cut, and no line has a
// bar's carriage return in it.
func TestJournalDoesNotDependOnCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"a", "\n", "\r", " 50%|# |", "[2026-02-19 05:52:10 TP0]", "msg ", "\r\n"})
		text := []byte(strings.Join(rapid.SliceOf(words).Draw(t, "words"), ""))
		at := time.Unix(0, 0)
		whole := &journald{}
		want := append(whole.pass(text, at), whole.rest()...)
		cut := &journald{}
		var got []byte
		for len(text) > 0 {
			n := rapid.IntRange(1, len(text)).Draw(t, "cut")
			got = append(got, cut.pass(text[:n], at)...)
			text = text[n:]
		}
		got = append(got, cut.rest()...)
		if !bytes.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if bytes.ContainsRune(got, '\r') || len(got) > 0 && got[len(got)-1] != '\n' {
			t.Errorf("not whole lines: %q", got)
		}
	})
}
