package phases

import "testing"

// TestHitAlone: where a line is all that an excerpt holds, the rule that knows
// it decides the cause, and no other rule contradicts it.
func TestHitAlone(t *testing.T) {
	for _, r := range BuiltinRules().Rules() {
		if r.Kind != RuleFault || r.Severity == SeverityClue || r.Times > 1 {
			continue
		}
		for _, hit := range r.Hits {
			got := explainBytes([]byte(hit + "\n"))
			if got.Cause == nil || !got.Failed {
				t.Errorf("%s: %q alone is no failure", r.ID, hit)
				continue
			}
			want := r.causeIn(got.Phase, false)
			if *got.Cause != want && r.Severity != SeverityMarker && r.Severity != SeverityWrapper {
				t.Errorf("%s: %q alone: got %s, want %s", r.ID, hit, *got.Cause, want)
			}
		}
	}
}
