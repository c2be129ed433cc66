package phases

import (
	"strings"
	"testing"
)

// TestUncoloured: what is told of a coloured line holds no colours and stands in
// that line as it is told.
func TestUncoloured(t *testing.T) {
	for raw, want := range map[string]string{
		"ValueError: bad head dim 72 of 3":                                    "ValueError: bad head dim 72 of 3",
		"\x1b[31mValueError: bad head dim 72 of 3\x1b[0m":                     "ValueError: bad head dim 72 of 3",
		"[31mValueError: bad head dim 72 of 3[0m":                             "ValueError: bad head dim 72 of 3",
		"\x1b[2m\x1b[31mValueError\x1b[0m: bad head dim 72 of \x1b[1m3":       ": bad head dim 72 of",
		"[2026-02-19 05:48:09 TP1] \x1b[31mCUDA error: out of memory\x1b[0m.": "CUDA error: out of memory",
		"[2026-02-19 05:48:09 TP1] [1;31mCUDA error: out of memory[0m.":       "CUDA error: out of memory",
	} {
		r := explainBytes([]byte(raw + "\n"))
		switch {
		case r.Root == nil:
			t.Errorf("%q: nothing is told", raw)
		case r.Root.Text != want || !strings.Contains(raw, r.Root.Text):
			t.Errorf("%q: got %q, want %q", raw, r.Root.Text, want)
		}
	}
}
