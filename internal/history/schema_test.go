package history

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sglaunch/phases"
)

// testdata/v1.sql is a database as the first release wrote it. It is never
// changed; each later schema must still read it.
func TestTheFirstSchemaIsStillRead(t *testing.T) {
	dump, err := os.ReadFile("testdata/v1.sql")
	if err != nil {
		t.Fatal(err)
	}
	path := testPath(t)
	overwrite(t, path, 0, "")
	execute(t, path, string(dump))
	db := openTest(t, path)
	got, err := db.Launch(t.Context(), "20261130T060000.000Z-glm-0001")
	if err != nil {
		t.Fatal(err)
	}
	want := fullLaunch("20261130T060000.000Z-glm-0001")
	a := fullAttempt(1)
	a.Patches[0].Output = "" // nobody checked answers then
	a.Phases, a.Numbers = []Span{fullSpan()}, []Number{{"TP0", "avail_mem_gb", 8.4}}
	want.Attempts = []Attempt{a}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStepsAreTakenOnce(t *testing.T) {
	path := testPath(t)
	fill(t, path)
	more := append(slices.Clone(steps), "ALTER TABLE launches ADD COLUMN mood TEXT NOT NULL DEFAULT 'good'", "UPDATE launches SET mood = mood || '!'")
	var launches sync.WaitGroup
	for range 8 {
		launches.Go(func() {
			db, err := open(t.Context(), path, more)
			if err != nil {
				t.Error(err)
				return
			}
			discard(db)
		})
	}
	launches.Wait()
	if got := column(t, path, "SELECT mood FROM launches"); got != "good!" {
		t.Errorf("got %q", got)
	}
}

func TestAStepThatFailsChangesNothing(t *testing.T) {
	path := testPath(t)
	fill(t, path)
	bad := append(slices.Clone(steps), "ALTER TABLE launches ADD COLUMN mood TEXT", "DROP TABLE nothing")
	_, err := open(t.Context(), path, bad)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("schema step %d", len(bad))) {
		t.Fatalf("got %v", err)
	}
	db := openTest(t, path) // by the sglaunch of before
	if l, err := db.Launch(t.Context(), "l1"); err != nil || len(l.Attempts) != 100 {
		t.Errorf("%d attempts: %v", len(l.Attempts), err)
	}
}

// Every phase of the vocabulary can be written and read.
func TestEveryPhaseIsKept(t *testing.T) {
	db := openTest(t, testPath(t))
	var want []Span
	for _, p := range phases.Phases() {
		want = append(want, Span{Phase: p})
	}
	if err := db.RecordPhases(t.Context(), "l1", 1, want...); err != nil {
		t.Fatal(err)
	}
	l, err := db.Launch(t.Context(), "l1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, l.Attempts[0].Phases); diff != "" {
		t.Error(diff)
	}
}

// column reads one text as somebody else's tool would.
func column(t *testing.T, path, query string) (text string) {
	t.Helper()
	db, err := openOnce(context.Background(), path, append(slices.Clone(steps), "", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer discard(db)
	if err := db.sql.QueryRow(query).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}
