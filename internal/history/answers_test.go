package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckedIsOfTheNewestSoundStart(t *testing.T) {
	db := openTest(t, testPath(t))
	ctx := t.Context()
	record := func(launch, model string, numbers ...Number) {
		must(t, db.RecordLaunch(ctx, Launch{ID: launch, Name: "glm"}))
		must(t, db.RecordAttempt(ctx, launch, Attempt{N: 1, Key: Key{Model: model}}))
		must(t, db.RecordNumbers(ctx, launch, 1, numbers...))
	}
	record("1", "/m", Number{Name: "check_answers", Value: 75}, Number{Name: "check_variety", Value: 0.8}, Number{"TP0", "kv_tokens", 7})
	record("2", "/m", Number{Name: "check_answers", Value: 20}, Number{Name: "checkered", Value: 1})
	record("3", "/m", Number{Name: "kv_tokens", Value: 9}) // was not checked
	record("4", "/other", Number{Name: "check_answers", Value: 1})
	got, err := db.Checked(ctx, "/m")
	if diff := cmp.Diff(map[string]float64{"check_answers": 20}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := db.Checked(ctx, "/unknown"); len(got) > 0 || err != nil {
		t.Errorf("of an unknown model: %v %v", got, err)
	}
}

func TestWrongOutlivesItsLaunch(t *testing.T) {
	db := openTest(t, testPath(t))
	ctx := t.Context()
	must(t, db.RecordLaunch(ctx, Launch{ID: "1", Name: "glm", Began: day}))
	first := Wrong{"tune", "c1", "NVIDIA H200", "0.6.3", "1", day, "3 of 75 answers are wrong"}
	second := Wrong{"tune", "c1", "", "", "2", day.Add(1e9), "1 of 75"}
	other := Wrong{"z", "c2", "", "", "1", day, ""}
	for _, w := range []Wrong{other, first, first, second} {
		must(t, db.RecordWrong(ctx, w))
	}
	must(t, db.Forget(ctx, 0))
	expect := func(want ...Wrong) {
		t.Helper()
		got, err := db.Wrong(ctx)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	}
	expect(second, first, other)
	if n, err := db.ForgetWrong(ctx, "tune", "1"); n != 1 || err != nil {
		t.Errorf("cleared %d: %v", n, err)
	}
	expect(second, other)
	if n, err := db.ForgetWrong(ctx, "tune", ""); n != 1 || err != nil {
		t.Errorf("cleared %d: %v", n, err)
	}
	expect(other)
}

// A start whose answers were wrong served nobody, however long it was up.
func TestWrongAnswersAreNoGoodStart(t *testing.T) {
	db := openTest(t, testPath(t))
	ctx := t.Context()
	must(t, db.RecordLaunch(ctx, Launch{ID: "1", Name: "glm"}))
	bad := fullAttempt(1)
	bad.Ended = bad.Ready.Add(healthy * 2)
	bad.Outcome, bad.Cause = "unhealthy", wrongAnswers
	must(t, db.RecordAttempt(ctx, "1", bad))
	if good, ok, err := db.LastGood(ctx, "glm"); ok || err != nil {
		t.Errorf("%+v %v", good, err)
	}
	if bad.wasHealthy() {
		t.Error("it counts as healthy")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
