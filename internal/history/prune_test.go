package history

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/statedir"
)

const running, ended, torn, missing = "running", "ended", "torn", "missing"

// state makes a state directory with one launch an hour, oldest first, of the
// given conditions, each with 1000 bytes of evidence.
func state(t *testing.T, conditions ...string) (statedir.Dir, []statedir.Launch) {
	t.Helper()
	t.Setenv("SGLAUNCH_STATE", filepath.Join(t.TempDir(), "state"))
	dir, err := statedir.Open()
	if err != nil {
		t.Fatal(err)
	}
	var launches []statedir.Launch
	for i, condition := range conditions {
		began := day.Add(time.Duration(i) * time.Hour)
		l, err := dir.NewLaunch("glm", began)
		if err != nil {
			t.Fatal(err)
		}
		a, err := l.NewAttempt(1)
		if err != nil {
			t.Fatal(err)
		}
		for path, text := range map[string]string{
			a.Log(): "output", l.Journal(): "{}\n", filepath.Join(a.Evidence(), "stacks", "TP0.txt"): strings.Repeat("x", 1000),
		} {
			write(t, path, text, began)
		}
		switch condition {
		case running:
			write(t, l.Record(), `{"v": 1, "id": "x", "code": 0}`, began)
		case ended:
			write(t, l.Record(), `{"v": 1, "id": "x", "ended": "2026-11-30T07:00:00Z", "code": 0}`, began)
		case torn:
			write(t, l.Record(), `{"v": 1, "ended": "2026-`, began)
		}
		launches = append(launches, l)
	}
	return dir, launches
}

func write(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// picture shows what is left of each launch: whole, bare (no evidence), gone.
func picture(launches []statedir.Launch) (left []string) {
	for _, l := range launches {
		_, folder := os.Stat(l.Attempt(1).Log())
		_, evidence := os.Stat(filepath.Join(l.Attempt(1).Evidence(), "stacks", "TP0.txt"))
		switch {
		case folder != nil:
			left = append(left, "gone")
		case evidence != nil:
			left = append(left, "bare")
		default:
			left = append(left, "whole")
		}
	}
	return left
}

func TestPrune(t *testing.T) {
	const whole, bare, gone = "whole", "bare", "gone"
	for _, test := range []struct {
		conditions []string
		keep       Keep
		want       []string
	}{
		{[]string{ended, ended, ended}, Keep{}, []string{whole, whole, whole}},
		{[]string{ended, ended, ended}, Keep{Launches: 2}, []string{gone, whole, whole}},
		{[]string{ended, ended, ended}, Keep{Launches: 5}, []string{whole, whole, whole}},
		{[]string{running, ended, ended, ended}, Keep{Launches: 1}, []string{whole, gone, gone, whole}},
		{[]string{torn, missing, ended, ended}, Keep{Launches: 1}, []string{whole, whole, gone, whole}},
		{[]string{ended, ended, ended}, Keep{Evidence: 2500}, []string{bare, whole, whole}},
		{[]string{ended, ended, ended}, Keep{Evidence: 1}, []string{bare, bare, bare}},
		{[]string{running, ended, ended}, Keep{Evidence: 2500}, []string{whole, bare, whole}},
		{[]string{running, torn, missing}, Keep{Launches: 1, Evidence: 1, Age: 1}, []string{whole, whole, whole}},
		{[]string{ended, ended, ended, ended}, Keep{Launches: 3, Evidence: 1500}, []string{gone, bare, bare, whole}},
		{[]string{ended, ended, ended}, Keep{Age: 90 * time.Minute}, []string{bare, whole, whole}},
	} {
		t.Run(fmt.Sprint(test.conditions, test.keep), func(t *testing.T) {
			dir, launches := state(t, test.conditions...)
			now := day.Add(2 * time.Hour)
			pruned, err := Prune(t.Context(), dir, test.keep, now)
			if err != nil {
				t.Fatal(err)
			}
			got := picture(launches)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			var ids []string
			var bytes int64
			for i, l := range launches {
				switch got[i] {
				case gone:
					ids = append(ids, l.ID)
				case bare:
					bytes += 1000
				}
			}
			if diff := cmp.Diff(Pruned{ids, bytes}, pruned); diff != "" {
				t.Error(diff)
			}
			if again, err := Prune(t.Context(), dir, test.keep, now); err != nil || len(again.Launches) > 0 || again.Evidence > 0 {
				t.Errorf("a second time: %+v, %v", again, err)
			}
		})
	}
}

// A link in the evidence is removed, not what it leads to.
func TestPruneFollowsNoLinks(t *testing.T) {
	dir, launches := state(t, ended, ended)
	precious := filepath.Join(t.TempDir(), "precious")
	write(t, precious, "weights", day)
	if err := os.Symlink(filepath.Dir(precious), filepath.Join(launches[0].Attempt(1).Evidence(), "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := Prune(t.Context(), dir, Keep{Evidence: 1}, day); err != nil {
		t.Fatal(err)
	}
	if _, err := Prune(t.Context(), dir, Keep{Launches: 1}, day); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestPruneStopsWhenAsked(t *testing.T) {
	dir, launches := state(t, ended, ended)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Prune(ctx, dir, Keep{Launches: 1, Evidence: 1}, day); err == nil {
		t.Error("no word of it")
	}
	if diff := cmp.Diff([]string{"whole", "whole"}, picture(launches)); diff != "" {
		t.Error(diff)
	}
}

// A Prune that was killed in the middle leaves what the next one finishes.
func TestPruneFinishesWhatWasBegun(t *testing.T) {
	dir, launches := state(t, ended, ended)
	if err := os.RemoveAll(filepath.Join(launches[0].Path, "attempts")); err != nil {
		t.Fatal(err)
	}
	if _, err := Prune(t.Context(), dir, Keep{Launches: 1, Evidence: 1 << 20}, day); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(launches[0].Path); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}
