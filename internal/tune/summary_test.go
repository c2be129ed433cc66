package tune

import (
	"strings"
	"testing"
)

// A baseline that is caught by something now and then is told, with both figures.
func TestTwoModesAreTold(t *testing.T) {
	for name, rates := range map[string][]float64{
		"two":  {100, 100.5, 64, 100.2, 64.5, 99.8, 100.1},
		"one":  {100, 100.5, 99.6, 100.2, 99.1, 99.8, 100.1},
		"near": {100, 100.01, 101, 100.02, 101.01, 100.01, 100}, // by less than counts
	} {
		a := newActor(t)
		a.study.Baseline.Every = 1
		a.study.Axes["--a"] = axisOf(8)
		a.plan()
		baselines := 0
		for baselines < len(rates) {
			do, ok := a.settle().(Launch)
			if !ok {
				t.Fatalf("%s: the night is over after %d launches of the baseline", name, baselines)
			}
			rate := 100.0
			if do.Slot.Trial == BaselineID {
				rate = rates[baselines]
				baselines++
			}
			if err := a.serve(flat(rate)); err != nil {
				t.Fatal(err)
			}
		}
		labels := strings.Join(a.n.Summary().Labels, "\n")
		const want = "two modes: of 7 launches of baseline, 2 are at 64.25 and 5 at 100.1 output_throughput, and none between"
		if strings.Contains(labels, "two modes") != (name == "two") || name == "two" && !strings.Contains(labels, want) {
			t.Errorf("%s: %q", name, labels)
		}
	}
}
