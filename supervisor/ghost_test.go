package supervisor

import (
	"testing"

	"sglaunch/internal/gpu"
	"sglaunch/internal/preflight"
	"sglaunch/supervisor/machine"
)

// The next start waits as long as a neighbour holds most of what he held.
func TestStillThere(t *testing.T) {
	const gib = 1 << 30
	h := &hands{Setup: Setup{Devices: []string{"GPU-a"}}}
	beside := []machine.Neighbour{{GPU: 0, Before: 30 * gib, Grown: 10 * gib}}
	for name, c := range map[string]struct {
		used   uint64
		beside []machine.Neighbour
		want   int
	}{
		"as before":  {40 * gib, beside, 1},
		"more":       {80 * gib, beside, 1},
		"half gone":  {20 * gib, beside, 0},
		"all gone":   {0, beside, 0},
		"never much": {gib, []machine.Neighbour{{GPU: 0, Before: gib}}, 0},
		"nobody":     {40 * gib, nil, 0},
		"on another": {40 * gib, []machine.Neighbour{{GPU: 1, Before: 40 * gib}}, 0},
	} {
		in := preflight.Input{GPUs: &gpu.Sample{GPUs: []gpu.GPU{{Index: 0, UUID: "GPU-a", Total: 100 * gib, Used: c.used}, {Index: 1, UUID: "GPU-b", Used: 40 * gib}}}}
		checks := h.stillThere(in, c.beside)
		if len(checks) != c.want || len(checks) == 1 && checks[0].Cause != "gpu_memory_held" {
			t.Errorf("%s: %+v", name, checks)
		}
	}
	if checks := h.stillThere(preflight.Input{}, beside); checks != nil {
		t.Errorf("nobody could ask: %+v", checks)
	}
}
