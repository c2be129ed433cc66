package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// filesBelow lists the files below a folder.
func filesBelow(t *testing.T, folder string) (all []string) {
	t.Helper()
	must(t, filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			below, _ := filepath.Rel(folder, path)
			all = append(all, below)
		}
		return err
	}))
	return all
}

// Of a store of entries only those of this attempt are put aside, and nothing
// while another process uses the store; a rank's file goes as it is.
func TestTuningPutAside(t *testing.T) {
	caches := t.TempDir()
	store := filepath.Join(caches, "rank_tp0_pp0_dp0")
	began := time.Now().Add(-time.Minute)
	write := func(below string, at time.Time) {
		path := filepath.Join(caches, below)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte("{}"), 0o600))
		must(t, os.Chtimes(path, at, at))
	}
	before, after := began.Add(-time.Hour), began.Add(time.Second)
	write("rank_tp0_pp0_dp0/fp4/entries/old.json", before)
	write("rank_tp0_pp0_dp0/fp4/entries/changed.json", after)
	write("rank_tp0_pp0_dp0/fp8/entries/new.json", after)
	write("rank_tp0_pp0_dp0/.lock", after)
	write("rank_tp1_pp0_dp0.json", before)

	other := flock.New(filepath.Join(store, storeLock))
	if ok, err := other.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if what, err := setAside(store, ".mark", began); err == nil || what != "" || !strings.Contains(err.Error(), "another process uses") {
		t.Errorf("a store in use: %q, %v", what, err)
	}
	if all := filesBelow(t, caches); len(all) != 5 {
		t.Errorf("a store in use was touched: %q", all)
	}
	must(t, other.Close())

	if what, err := setAside(store, ".mark", began); err != nil || what != store+" (2 entries)" {
		t.Errorf("the store: %q, %v", what, err)
	}
	if what, err := setAside(filepath.Join(caches, "rank_tp1_pp0_dp0.json"), ".mark", began); err != nil || what == "" {
		t.Errorf("the file: %q, %v", what, err)
	}
	for _, gone := range []string{"rank_tp1_pp0_dp0.json", "rank_tp2_pp0_dp0"} {
		if what, err := setAside(filepath.Join(caches, gone), ".mark", began); err != nil || what != "" {
			t.Errorf("what is not there: %q, %v", what, err)
		}
	}
	want := []string{
		"rank_tp0_pp0_dp0/.lock", "rank_tp0_pp0_dp0/fp4/entries/old.json",
		"rank_tp0_pp0_dp0.mark/fp4/entries/changed.json", "rank_tp0_pp0_dp0.mark/fp8/entries/new.json",
		"rank_tp1_pp0_dp0.json.mark",
	}
	if all := filesBelow(t, caches); !slices.Equal(all, want) {
		t.Errorf("got %q, want %q", all, want)
	}
}

// The caches are those that the output names: a file of each rank, in later
// releases a folder; once each, and nothing else.
func TestTuningCachesOfALog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "server.log")
	must(t, os.WriteFile(log, []byte(`[2026-02-19 05:48:40 TP0] Running FlashInfer autotune with cache: /c/flashinfer/autotune/0.6.11/sm100/00ff/rank_tp0_pp0_dp0.json
[2026-02-19 05:48:40 TP1] Running FlashInfer autotune with cache: /c/flashinfer/autotune/managed/runs/2026-10-01/00ff/rank_tp1_pp0_dp0
[2026-02-19 05:49:40 TP1] Running FlashInfer autotune with cache: /c/flashinfer/autotune/managed/runs/2026-10-01/00ff/rank_tp1_pp0_dp0
[2026-02-19 05:48:40 TP2] Running FlashInfer autotune in memory only (no cache)
[2026-02-19 05:48:40 TP3] Running FlashInfer autotune with cache: /etc/passwd
`), 0o600))
	caches, err := tuningCaches(log)
	must(t, err)
	want := []string{
		"/c/flashinfer/autotune/0.6.11/sm100/00ff/rank_tp0_pp0_dp0.json", "/c/flashinfer/autotune/managed/runs/2026-10-01/00ff/rank_tp1_pp0_dp0",
	}
	if !slices.Equal(caches, want) {
		t.Errorf("got %q, want %q", caches, want)
	}
}

func TestBegunAt(t *testing.T) {
	events := filepath.Join(t.TempDir(), "events.jsonl")
	must(t, os.WriteFile(events, []byte(`{"level":"info","v":1,"time":"2026-02-19T05:48:40Z","launch":"glm","attempt":1,"event":"attempt_started"}
{"level":"info","v":1,"time":"2026-02-19T05:50:40Z","launch":"glm","attempt":1,"event":"pha`), 0o600))
	if at := begunAt(events); !at.Equal(time.Date(2026, 2, 19, 5, 48, 40, 0, time.UTC)) {
		t.Errorf("begun at %v", at)
	}
	if at := begunAt(events + ".absent"); !at.IsZero() {
		t.Errorf("begun at %v", at)
	}
}
