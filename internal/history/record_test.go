package history

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/phases"
)

func TestWhatIsRecordedIsRead(t *testing.T) {
	db := openTest(t, testPath(t))
	want := fullLaunch("20261130T060000.000Z-glm-0001")
	if err := db.RecordLaunch(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	a := fullAttempt(1)
	if err := db.RecordAttempt(t.Context(), want.ID, a); err != nil {
		t.Fatal(err)
	}
	a.Phases = []Span{{Phase: phases.LoadingWeights, Took: 390 * time.Second, Complete: true}, fullSpan()}
	a.Numbers = []Number{{"", "kv_tokens", 454112}, {"TP0", "avail_mem_gb", 8.4}}
	if err := db.RecordPhases(t.Context(), want.ID, 1, a.Phases...); err != nil {
		t.Fatal(err)
	}
	if err := db.RecordNumbers(t.Context(), want.ID, 1, append(a.Numbers, Number{"", "weights_gb", math.NaN()})...); err != nil {
		t.Fatal(err)
	}
	want.Attempts = []Attempt{a}
	got, err := db.Launch(t.Context(), want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A supervisor that takes over knows less than its predecessor and repeats
// some of what that one wrote.
func TestZeroLeavesAloneWhatIsOnDisk(t *testing.T) {
	db := openTest(t, testPath(t))
	want := fullLaunch("l1")
	want.Attempts = []Attempt{fullAttempt(1)}
	for _, l := range []Launch{want, {ID: "l1"}} {
		if err := db.RecordLaunch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range []Attempt{fullAttempt(1), {N: 1}, {N: 1, Patches: []Patch{{Name: "autotune"}}}} {
		if err := db.RecordAttempt(t.Context(), "l1", a); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Launch(t.Context(), "l1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The record of a launch may have met a full disk; its phases must not be lost
// for that.
func TestAPhaseNeedsNoEarlierRecord(t *testing.T) {
	db := openTest(t, testPath(t))
	if err := db.RecordPhases(t.Context(), "l1", 2, fullSpan()); err != nil {
		t.Fatal(err)
	}
	got, err := db.Launch(t.Context(), "l1")
	if err != nil {
		t.Fatal(err)
	}
	want := Launch{ID: "l1", Command: []string{}, Attempts: []Attempt{{N: 2, Phases: []Span{fullSpan()}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheNewestWordOnAPhaseCounts(t *testing.T) {
	db := openTest(t, testPath(t))
	begun := fullSpan()
	begun.Complete, begun.Done = false, 41
	for _, s := range []Span{begun, fullSpan()} {
		if err := db.RecordPhases(t.Context(), "l1", 1, s); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Launch(t.Context(), "l1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Span{fullSpan()}, got.Attempts[0].Phases); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedRecords(t *testing.T) {
	db := openTest(t, testPath(t))
	for name, err := range map[string]error{
		"attempt 0":   db.RecordAttempt(t.Context(), "l1", Attempt{}),
		"no id":       db.RecordLaunch(t.Context(), Launch{}),
		"phase of no": db.RecordPhases(t.Context(), "", 1, fullSpan()),
	} {
		if err == nil {
			t.Errorf("%s was recorded", name)
		}
	}
	launches, err := db.Launches(t.Context(), "", 10)
	if err != nil || len(launches) != 0 {
		t.Errorf("a refused record left %v, %v", launches, err)
	}
}

func TestOnlyOursToRead(t *testing.T) {
	path := testPath(t)
	openTest(t, path)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", filepath.Base(f), info.Mode())
		}
	}
	if len(files) < 2 {
		t.Errorf("found only %q", files)
	}
}

func TestLaunchesNewestFirst(t *testing.T) {
	db := openTest(t, testPath(t))
	for _, l := range []Launch{{ID: "1", Name: "a"}, {ID: "2", Name: "b"}, {ID: "3", Name: "a"}} {
		if err := db.RecordLaunch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name  string
		limit int
		want  []string
	}{
		{"", 10, []string{"3", "2", "1"}},
		{"a", 10, []string{"3", "1"}},
		{"", 2, []string{"3", "2"}},
		{"none", 10, nil},
	} {
		launches, err := db.Launches(t.Context(), test.name, test.limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range launches {
			got = append(got, l.ID)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Launches(%q, %d): %s", test.name, test.limit, diff)
		}
	}
}
