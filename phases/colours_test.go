package phases

import (
	"strings"
	"testing"
)

// TestUncoloured: what is told of a coloured line is all of it, without its colours.
func TestUncoloured(t *testing.T) {
	for raw, want := range map[string]string{
		"ValueError: bad head dim 72 of 3":                                    "ValueError: bad head dim 72 of 3",
		"\x1b[31mValueError: bad head dim 72 of 3\x1b[0m":                     "ValueError: bad head dim 72 of 3",
		"[31mValueError: bad head dim 72 of 3[0m":                             "ValueError: bad head dim 72 of 3",
		"\x1b[2m\x1b[31mValueError\x1b[0m: bad head dim 72 of \x1b[1m3":       "ValueError: bad head dim 72 of 3",
		"[2mValueError: bad [1mhead[22m dim 72 of 3[0m":                       "ValueError: bad head dim 72 of 3",
		"ValueError: bad \x1b]8;;http://x\x1b\\head\x1b]8;;\x1b\\ dim":        "ValueError: bad head dim",
		"ValueError: bad head[0] and [12] of [m":                              "ValueError: bad head[0] and [12] of [m",
		"[2026-02-19 05:48:09 TP1] \x1b[31mCUDA error: out of memory\x1b[0m.": "CUDA error: out of memory",
		"[2026-02-19 05:48:09 TP1] [1;31mCUDA error: out of memory[0m.":       "CUDA error: out of memory",
	} {
		r := explainBytes([]byte(raw + "\n"))
		switch {
		case r.Root == nil:
			t.Errorf("%q: nothing is told", raw)
		case r.Root.Text != want:
			t.Errorf("%q: got %q, want %q", raw, r.Root.Text, want)
		}
	}
}

// TestColouredCompiler: gcc's error comes before ninja's, in colours as without.
func TestColouredCompiler(t *testing.T) {
	for _, line := range []string{
		"\x1b[01m\x1b[Ka.cpp:3:9:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kexpected '\x1b[01m\x1b[K;\x1b[m\x1b[K'",
		"a.cpp:3:9: \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kexpected ';'",
		"a.cpp:3:9: error: expected ';'",
	} {
		r := explainBytes([]byte(line + "\nninja: build stopped: subcommand failed.\n"))
		if r.Root == nil || r.Root.Text != "a.cpp:3:9: error: expected ';'" {
			t.Errorf("%q: the root is %+v", line, r.Root)
		}
	}
}

// TestEscapeSequences: of every kind of sequence nothing is left, and nothing is
// lost of what stands behind one, even if that has no end.
func TestEscapeSequences(t *testing.T) {
	for raw, want := range map[string]string{
		"a\x1b[01;31m\x1b[Kb\x1b[m\x1b[Kc":                         "abc",
		"a\x1b[?25lb\x1b[38:2::1:2:3mc\x1b[0 qd":                   "abcd",
		"a\x1b(Bb\x1b7c\x1b=d\x1b#8e\x1bMf":                        "abcdef",
		"a\x1b]0;title\ab":                                         "ab",
		"a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b":               "alinkb",
		"a\x1bPq#0~\x1b\\b\x1b^x\x1b\\c\x1b_y\x1b\\d\x1bXz\x1b\\e": "abcde",
		"a\x1bP1\a2\x1b\\b":                                        "ab", // a bell ends an OSC alone
		"a\x1b]8;;é\x1b\\b":                                        "ab",
		// Broken off.
		"a\x1b]0;title":         "a0;title",
		"a\x1bPtext\x1b[0mb\ac": "atextb\ac",
		"a\x1b[31":              "a",
		"a\x1b[31\x1b[mb":       "ab",
		"a\x1b[3é":              "aé",
		"a\x1b\tb":              "a\tb",
		"a\x1b\x1b[mb":          "ab",
		"a\x1b":                 "a",
	} {
		if got := string(stripANSI(nil, []byte(raw))); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

// TestFaultBehindEscapes: a fault is seen behind any sequence, also one without an
// end.
func TestFaultBehindEscapes(t *testing.T) {
	const fault = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 53.72 GiB."
	for _, begin := range []string{"\x1b]8;;http://x\x1b\\", "\x1b]8;;http://x\a", "\x1b]0;", "\x1bP1$r\x1b\\", "\x1b_x\x1b\\", "\x1b(B", "\x1b[3\x1b[m"} {
		if r := explainBytes([]byte(begin + fault + "\x1b]8;;\x1b\\\n")); r.Root == nil || !strings.HasSuffix(r.Root.Text, fault) {
			t.Errorf("behind %q: %+v", begin, r.Root)
		}
	}
}
