package phases

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew; commit only what you understand")

// logs lists the own-made outputs, named after their release and scenario.
func logs(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob("testdata/*/*.log")
	if err != nil || len(found) == 0 {
		t.Fatalf("no logs in testdata: %v", err)
	}
	return found
}

// explainBytes reads a whole output at once.
func explainBytes(data []byte) Report {
	tracker := NewTracker(BuiltinRules())
	tracker.Feed(data)
	tracker.Finish()
	return tracker.Report()
}

// TestGolden reads every own-made log and compares the report.
func TestGolden(t *testing.T) {
	for _, path := range logs(t) {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".log"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(explainBytes(data), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(path, ".log") + ".golden"
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
				t.Errorf("report of %s differs (-golden +got):\n%s", path, diff)
			}
		})
	}
}

// TestReadIsTrackerOnFiles makes sure that the fast way to read a file gives
// what the live way gives.
func TestReadIsTrackerOnFiles(t *testing.T) {
	for _, path := range logs(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(bytes.NewReader(data), BuiltinRules())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asJSON(t, explainBytes(data)), asJSON(t, got)); diff != "" {
			t.Errorf("%s (-live +file):\n%s", path, diff)
		}
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
