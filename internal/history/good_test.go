package history

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(minute int) time.Time { return day.Add(time.Duration(minute) * time.Minute) }

// record writes launches of the name glm.
func record(t *testing.T, db *DB, launches ...Launch) {
	t.Helper()
	for _, l := range launches {
		if err := db.RecordLaunch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		for _, a := range l.Attempts {
			if err := db.RecordAttempt(t.Context(), l.ID, a); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestLastGood(t *testing.T) {
	one := []Patch{{Name: "one"}}
	for name, test := range map[string]struct {
		attempts []Attempt
		want     int // attempt; 0 = none
	}{
		"none":                        {nil, 0},
		"never ready":                 {[]Attempt{{N: 1, Outcome: "crashed"}}, 0},
		"runs":                        {[]Attempt{{N: 1, Ready: at(5)}}, 1},
		"stopped as asked":            {[]Attempt{{N: 1, Ready: at(5), Ended: at(6), Outcome: "stopped"}}, 1},
		"crashed at once":             {[]Attempt{{N: 1, Ready: at(5), Ended: at(6), Outcome: "crashed"}}, 0},
		"crashed after a day":         {[]Attempt{{N: 1, Ready: at(5), Ended: at(1445), Outcome: "crashed"}}, 1},
		"stopped before it was ready": {[]Attempt{{N: 1, Ended: at(6), Outcome: "stopped"}}, 0},
		"the newest": {[]Attempt{
			{N: 1, Ready: at(5), Ended: at(50), Outcome: "unhealthy"}, {N: 2, Ready: at(55), Ended: at(90), Outcome: "crashed"}, {N: 3, Outcome: "hung"},
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			db := openTest(t, testPath(t))
			for i := range test.attempts {
				test.attempts[i].Key, test.attempts[i].Patches = key, one
			}
			record(t, db, Launch{ID: "1", Name: "glm", Command: []string{"x"}, Attempts: test.attempts},
				Launch{ID: "2", Name: "another", Attempts: []Attempt{{N: 9, Ready: at(70)}}})
			good, ok, err := db.LastGood(t.Context(), "glm")
			if err != nil {
				t.Fatal(err)
			}
			var want Good
			if test.want > 0 {
				want = Good{Launch: "1", Attempt: test.want, Key: key, Command: []string{"x"}, Patches: one, Ready: good.Ready}
			}
			if diff := cmp.Diff(want, good); diff != "" || ok != (test.want > 0) {
				t.Error(ok, diff)
			}
		})
	}
}

func TestEarlierLaunches(t *testing.T) {
	ten, zero := 10, 0
	failed := func(n, minute int, fingerprint string) Attempt {
		return Attempt{N: n, Began: at(minute), Ended: at(minute + 1), Outcome: "crashed", Fingerprint: fingerprint}
	}
	served := Attempt{N: 2, Began: at(20), Ready: at(25), Ended: at(60), Outcome: "crashed", Fingerprint: "a"}
	launch := func(id string, code *int, attempts ...Attempt) Launch {
		return Launch{ID: id, Name: "glm", Key: fullLaunch("").Key, Began: attempts[0].Began, Code: code, Attempts: attempts}
	}
	changed := launch("2", &ten, failed(1, 30, "a"))
	changed.Key.Flags = "f2"
	for name, test := range map[string]struct {
		launches []Launch
		since    int
		want     Earlier
	}{
		"nothing": {},
		"a crash loop over launches": {
			[]Launch{launch("1", &ten, failed(1, 0, "a"), failed(2, 5, "a")), launch("2", &ten, failed(1, 10, "a"))}, 0,
			Earlier{[]time.Time{at(0), at(5), at(10)}, "a", 3},
		},
		"another cause before": {
			[]Launch{launch("1", &ten, failed(1, 0, "a"), failed(2, 5, "b")), launch("2", &ten, failed(1, 10, "a"))}, 0,
			Earlier{[]time.Time{at(0), at(5), at(10)}, "a", 1},
		},
		"killed with its sglaunch": {
			[]Launch{launch("1", nil, failed(1, 0, "a"), Attempt{N: 2, Began: at(5)})}, 0,
			Earlier{[]time.Time{at(0), at(5)}, "a", 1},
		},
		"out of the window":   {[]Launch{launch("1", &ten, failed(1, 1, "a")), launch("2", &ten, failed(1, 10, "a"))}, 5, Earlier{[]time.Time{at(10)}, "a", 1}},
		"ended as asked":      {[]Launch{launch("1", &ten, failed(1, 0, "a")), launch("2", &zero, failed(1, 10, "a"))}, 0, Earlier{}},
		"a healthy stretch":   {[]Launch{launch("1", &ten, failed(1, 0, "a"), served, failed(3, 61, "a"))}, 0, Earlier{[]time.Time{at(61)}, "a", 1}},
		"asked for otherwise": {[]Launch{launch("1", &ten, failed(1, 0, "a")), changed, launch("3", &ten, failed(1, 40, "a"))}, 0, Earlier{[]time.Time{at(40)}, "a", 1}},
	} {
		t.Run(name, func(t *testing.T) {
			db := openTest(t, testPath(t))
			record(t, db, test.launches...)
			got, err := db.Earlier(t.Context(), "glm", key, at(test.since))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPastReadsStartsThatCompare(t *testing.T) {
	db := openTest(t, testPath(t))
	other := key
	other.Machine = "m2"
	for n, k := range []Key{key, key, other, key} {
		launch := Launch{ID: at(n).Format(time.RFC3339), Name: "glm", Attempts: []Attempt{{N: 1, Key: k, Ready: at(n)}}}
		record(t, db, launch)
		spans := []Span{
			{Phase: weights, Took: time.Duration(n+1) * time.Minute, Complete: true},
			{Rank: "TP0", Phase: weights, Took: time.Hour, Complete: true}, // a rank's own time is not the launch's
		}
		if err := db.RecordPhases(t.Context(), launch.ID, 1, spans...); err != nil {
			t.Fatal(err)
		}
	}
	// It was killed in mid-load, so its time teaches nothing.
	if err := db.RecordPhases(t.Context(), at(9).Format(time.RFC3339), 1, Span{Phase: weights, Took: 4 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	p, err := db.Past(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := p.took(weights)
	if diff := cmp.Diff([]float64{240, 120, 60}, got); diff != "" {
		t.Error(diff)
	}
	if p.Starts() != 3 {
		t.Errorf("%d starts", p.Starts())
	}
}

func TestForget(t *testing.T) {
	db := openTest(t, testPath(t))
	for _, l := range []Launch{{ID: "1"}, {ID: "2", Ended: at(1)}, {ID: "3"}, {ID: "4", Ended: at(1)}, {ID: "5", Ended: at(1)}, {ID: "6", Ended: at(1)}} {
		l.Attempts = []Attempt{fullAttempt(1)}
		record(t, db, l)
	}
	if err := db.Forget(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{"1": false, "2": false, "3": true, "4": false, "5": true, "6": true} {
		l, err := db.Launch(t.Context(), id)
		if got := err == nil && len(l.Attempts) == 1; got != want {
			t.Errorf("launch %s is kept: %v (%v)", id, got, err)
		}
		if !want && !errors.Is(err, ErrUnknownLaunch) {
			t.Errorf("launch %s: %v", id, err)
		}
	}
}
