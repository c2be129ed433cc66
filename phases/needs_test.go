package phases

import (
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNeeds(t *testing.T) {
	for expression, want := range map[string][]string{
		`a plain text`: {"a plain text"},
		`(?P<text>(?:[\w.]+: )?CUDA (oom|OOM)\. .*)`: {"CUDA oom. ", "CUDA OOM. "},
		`(?:HIP|XPU|NPU|MUSA) out of memory`:         {"HIP out of memory", "XPU out of memory", "NPU out of memory", "MUSA out of memory"},
		`^Killed\b|Terminated$`:                      {"Killed", "Terminated"},
		`Killed|.*`:                                  nil,
		`(?i)error`:                                  nil,
		`(?:abc)?(?:def)*`:                           nil,
		`(?:abc)+\d`:                                 {"abc"},
		`\d+ shards of \S+ files`:                    {" shards of "},
		`a`:                                          nil,
	} {
		var got []string
		for _, one := range needOf(expression) {
			got = append(got, string(one))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", expression, got, want)
		}
	}
}

// TestNeedsAreMet: nothing that an expression matches is kept from it.
func TestNeedsAreMet(t *testing.T) {
	for _, r := range BuiltinRules().Rules() {
		if r.Re == "" {
			continue
		}
		needed := needOf(r.Re)
		for _, hit := range r.Hits {
			if re := regexp.MustCompile(r.Re); re.MatchString(hit) && !needed.met([]byte(hit)) {
				t.Errorf("%s: %q holds none of %q", r.ID, hit, needed)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		rules := BuiltinRules().Rules()
		r := rules[rapid.IntRange(0, len(rules)-1).Draw(t, "rule")]
		if r.Re == "" {
			return
		}
		text := rapid.StringMatching(r.Re).Draw(t, "text")
		if !needOf(r.Re).met([]byte(text)) {
			t.Fatalf("%s: %q holds none of %q", r.ID, text, needOf(r.Re))
		}
	})
}
