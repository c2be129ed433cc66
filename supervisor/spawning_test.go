package supervisor

import (
	"slices"
	"testing"
)

// What rungs and overlays set is not hidden by what was set before.
func TestEnvironmentHoldsAVariableOnce(t *testing.T) {
	h := &hands{Setup: Setup{Env: []string{"PYTHONPATH=/mine", "HOME=/root", "SPT_NOENV=0", "NCCL_DEBUG=WARN"}}}
	h.watch = newWatcher(h)
	h.watch.patched(nil, []string{"PYTHONPATH=/overlay:/mine"})
	got := h.environment([]string{"NCCL_DEBUG=INFO"})
	slices.Sort(got)
	want := []string{"HOME=/root", "NCCL_DEBUG=INFO", "PYTHONPATH=/overlay:/mine", "SPT_NOENV=1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
