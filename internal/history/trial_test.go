package history

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTrials(t *testing.T) {
	db := openTest(t, testPath(t))
	night := time.Date(2026, 2, 19, 22, 0, 0, 0, time.UTC)
	trial := func(launch string, minutes int, value float64) Trial {
		return Trial{Launch: launch, Study: "s", Night: night, Trial: "baseline", Name: "baseline", Stage: "screen",
			Machine: "m", Model: "glm", Metric: "output_throughput", Value: value, At: night.Add(time.Duration(minutes) * time.Minute)}
	}
	first, second, other := trial("l1", 10, 1000), trial("l2", 30, 1010), trial("l3", 20, 5)
	other.Metric = "p99_ttft_ms"
	if err := db.RecordTrials(t.Context(), second, first, other, trial("l4", 40, math.NaN())); err != nil {
		t.Fatal(err)
	}
	first.Value = 990 // a tuner that comes back may say it again
	if err := db.RecordTrials(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	got, err := db.Trials(t.Context(), "m", "glm", "output_throughput", 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Trial{first, second}, got, cmp.Comparer(time.Time.Equal)); diff != "" {
		t.Error(diff)
	}
	if got, err = db.Trials(t.Context(), "m", "glm", "output_throughput", 1); err != nil || len(got) != 1 || got[0].Launch != "l2" {
		t.Errorf("the newest is %+v, %v", got, err)
	}
	if err := db.RecordTrials(t.Context(), Trial{}); err == nil {
		t.Error("a trial without a launch is taken")
	}
}
