package patch

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pythonish draws text with scopes, repeated lines, comments and strings.
func pythonish() *rapid.Generator[[]byte] {
	line := rapid.SampledFrom([]string{
		"class A:", "class B:", "    def f(self):", "    def g(self):", "def f():", "        return 1", "        x = [", "            1,",
		"        ]", "    # comment", "", "\"\"\"doc", "\"\"\"", "        return 1  # \"", "\tpass", "  'a' \\", "@d", "async def h():", "if x:", "    y()",
	})
	return rapid.Custom(func(t *rapid.T) []byte {
		lines := rapid.SliceOfN(line, 0, 30).Draw(t, "lines")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		text := strings.Join(lines, end)
		if rapid.Bool().Draw(t, "last") {
			text += end
		}
		return []byte(text)
	})
}

func TestEditsFromGiveTheChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := pythonish().Draw(t, "before"), pythonish().Draw(t, "after")
		if rapid.Bool().Draw(t, "small") { // a change of a few lines, the usual case
			lines := bytes.SplitAfter(before, []byte("\n"))
			i := rapid.IntRange(0, len(lines)-1).Draw(t, "at")
			lines[i] = append([]byte("changed\n"), lines[i]...)
			after = bytes.Join(lines, nil)
		}
		edits, err := EditsFrom(before, after)
		if err != nil {
			if bytes.Equal(before, after) || len(bytes.TrimSpace(before)) == 0 {
				return
			}
			t.Fatal(err)
		}
		made, err := applyEdits(before, edits)
		if err != nil || !bytes.Equal(made, after) {
			t.Fatalf("edits %+v give %q, %v", edits, made, err)
		}
	})
}

func TestEditsFromAreSmall(t *testing.T) {
	t.Parallel()
	before := "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 1\n"
	after := strings.Replace(before, "    def g(self):\n        return 1\n", "    def g(self):\n        return 2\n", 1)
	edits, err := EditsFrom([]byte(before), []byte(after))
	if err != nil {
		t.Fatal(err)
	}
	want := Edit{Within: "class A / def g", Find: "        return 1\n", Replace: "        return 2\n"}
	if len(edits) != 1 || edits[0] != want {
		t.Errorf("edits are %+v", edits)
	}
}
