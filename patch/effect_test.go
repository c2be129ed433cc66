package patch

import (
	"fmt"
	"strings"
	"testing"
)

func eight() []string {
	var all []string
	for i := range 8 {
		all = append(all, fmt.Sprintf("TP%d", i))
	}
	return all
}

func TestEffect(t *testing.T) {
	t.Parallel()
	p, _ := Shipped(founding)
	chosen := strings.Fields("--moe-runner-backend flashinfer_cutlass --tp 8")
	marker := Patch{Name: "x", Proof: Proof{Marker: "patched", Ranks: RanksAny}}
	tests := []struct {
		name    string
		facts   Facts
		seen    Seen
		want    Effectiveness
		missing string
	}{
		{"all ranks", Facts{p, true, chosen}, Seen{Expected: eight(), Proved: eight()}, Effective, ""},
		{"seven of eight", Facts{p, true, chosen}, Seen{Expected: eight(), Proved: eight()[:7], Over: true}, Partial, "TP7"},
		{"seven so far", Facts{p, true, chosen}, Seen{Expected: eight(), Proved: eight()[:7]}, Unknown, ""},
		{"began and never ended", Facts{p, true, chosen}, Seen{Expected: eight()[:1], Began: eight()[:1], Over: true}, Partial, "TP0"},
		{"nothing, and it should have", Facts{p, true, chosen}, Seen{Expected: eight(), Over: true}, Ineffective, ""},
		{"nothing yet", Facts{p, true, chosen}, Seen{Expected: eight()}, Unknown, ""},
		{"another backend", Facts{p, true, []string{"--moe-runner-backend", "triton"}}, Seen{Expected: eight(), Over: true}, NotExpected, ""},
		{"another backend was resolved", Facts{p, true, chosen}, Seen{Expected: eight(), Over: true, Settings: map[string]string{"moe_runner_backend": "triton"}}, NotExpected, ""},
		{"auto, which resolved to it", Facts{p, true, nil}, Seen{Expected: eight(), Over: true, Settings: map[string]string{"moe_runner_backend": "flashinfer_cutlass", "quantization": "None"}}, Ineffective, ""},
		{"not in the file", Facts{p, false, chosen}, Seen{Expected: eight(), Proved: eight()}, Ineffective, ""},
		{"no proof declared", Facts{Patch{Name: "x"}, true, nil}, Seen{Over: true}, Unknown, ""},
		{"ranks not known", Facts{p, true, chosen}, Seen{Proved: eight()[:2], Over: true}, Unknown, ""},
		{"any rank will do", Facts{marker, true, nil}, Seen{Expected: eight(), Proved: eight()[3:4]}, Effective, ""},
		{"a marker on none", Facts{marker, true, nil}, Seen{Expected: eight(), Over: true}, Ineffective, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Effect(test.facts, test.seen)
			if got.Effect != test.want || strings.Join(got.Missing, " ") != test.missing || got.Reason == "" {
				t.Errorf("verdict is %+v", got)
			}
		})
	}
}
