package conduct

import (
	"math"
	"testing"
	"time"

	"sglaunch/internal/gpu"
)

// The energy of a run is that of all GPUs by their counters, over the part of the
// window in which requests were under way.
func TestJoules(t *testing.T) {
	began := time.Unix(1e9, 0)
	second := func(i int) time.Time { return began.Add(time.Duration(i) * time.Second) }
	// Two GPUs, 50 W each for ten seconds, then 350 W each for ten.
	gpus := func(i int) []gpu.GPU {
		mj := gpu.Read(int64(5_000_000 + 50_000*min(i, 10) + 350_000*max(0, i-10)))
		return []gpu.GPU{{EnergyMJ: mj}, {EnergyMJ: mj}}
	}
	watched := func(seconds []int, gpus func(int) []gpu.GPU) *window {
		w := &window{began: began}
		for _, i := range seconds {
			w.count(second(i), gpus(i))
		}
		return w
	}
	all := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
	for name, tt := range map[string]struct {
		at      []int
		gpus    func(int) []gpu.GPU
		seconds float64
		want    float64
	}{
		"under load":               {all, gpus, 10, 7000},
		"of a part of a second":    {all, gpus, 9.5, 6650},
		"longer than the window":   {all, gpus, 60, 20 * (900 + 6300) / 18.},
		"not known how long":       {all, gpus, 0, 20 * (900 + 6300) / 18.},
		"of the half at least":     {[]int{1, 11, 16}, gpus, 10, 7000},
		"of less than the half":    {[]int{1, 11, 15}, gpus, 10, 0},
		"one reading":              {[]int{15}, gpus, 10, 0},
		"no reading":               {nil, gpus, 10, 0},
		"a counter begins anew":    {all, func(i int) []gpu.GPU { return gpus(40 - i) }, 10, 0},
		"one GPU does not tell":    {all, func(i int) []gpu.GPU { return append(gpus(i), gpu.GPU{}) }, 10, 0},
		"no GPU tells":             {all, func(int) []gpu.GPU { return []gpu.GPU{{}} }, 10, 0},
		"nothing was used at all?": {all, func(int) []gpu.GPU { return gpus(3) }, 10, 0},
	} {
		if got := watched(tt.at, tt.gpus).joules(tt.seconds, second(20)); math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("%s: %v J, want %v", name, got, tt.want)
		}
	}
}
