package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/phases"
	"sglaunch/supervisor"
)

// recorded makes a state directory with one launch.
func recorded(t *testing.T) statedir.Dir {
	t.Helper()
	t.Setenv("SGLAUNCH_STATE", filepath.Join(t.TempDir(), "state"))
	dir, err := statedir.Open()
	if err != nil {
		t.Fatal(err)
	}
	db, err := history.Open(t.Context(), dir.History())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	began := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	for _, err := range []error{
		db.RecordLaunch(t.Context(), history.Launch{ID: "20261130T060000.000Z-glm-0001", Name: "glm", Began: began}),
		db.RecordAttempt(t.Context(), "20261130T060000.000Z-glm-0001", history.Attempt{
			N: 1, Began: began, Ended: began.Add(time.Minute), Outcome: "crashed", Cause: "oom_weights",
		}),
		db.RecordPhases(t.Context(), "20261130T060000.000Z-glm-0001", 1, history.Span{Phase: phases.LoadingWeights, Took: 50 * time.Second}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sglaunch runs a command line within the test.
func runHistory(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = execute(append([]string{"history"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestHistory(t *testing.T) {
	recorded(t)
	for _, test := range []struct {
		args           []string
		code           int
		stdout, stderr string // a part of each
	}{
		{nil, 0, "50s", ""},
		{[]string{"glm"}, 0, "oom_weights", ""},
		{[]string{"-n", "1"}, 0, "oom_weights", ""},
		{[]string{"20261130T060000.000Z-glm-0001"}, 0, "attempt 1  began ", ""},
		{[]string{"gml"}, 1, "", "sglaunch: cannot find a launch \"gml\": no launch has that name or id\nsglaunch: hint: sglaunch history lists them all\n"},
		{[]string{"-n", "0"}, exitUsage, "", "cannot show 0 launches: at least 1"},
		{[]string{"a", "b"}, exitUsage, "", "an argument too many"},
	} {
		code, stdout, stderr := runHistory(test.args...)
		if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) {
			t.Errorf("history %q: exit %d\n%s%s", test.args, code, stdout, stderr)
		}
	}
}

func TestHistoryForScripts(t *testing.T) {
	recorded(t)
	code, stdout, stderr := runHistory("--json")
	var got struct {
		V        int
		Time     time.Time
		Launches []struct {
			ID       string
			Attempts []struct {
				Cause  string
				Phases []struct {
					Name    string
					Seconds float64
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s", code, err, stderr)
	}
	if got.V != 1 || got.Time.IsZero() || len(got.Launches) != 1 {
		t.Fatal(stdout)
	}
	a := got.Launches[0].Attempts[0]
	if a.Cause != "oom_weights" || a.Phases[0].Name != "loading_weights" || a.Phases[0].Seconds != 50 {
		t.Error(stdout)
	}
}

// A launch whose sglaunch has died is not said to go on.
func TestHistoryOfTheKilled(t *testing.T) {
	dir := recorded(t)
	id := "20261130T060000.000Z-glm-0001"
	folder := filepath.Join(dir.State, "launches", id)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for boot, killed := range map[string]bool{"an earlier one": true, proc.BootID(): false} {
		record, err := json.Marshal(supervisor.LaunchRecord{V: 1, ID: id, Boot: boot, Shim: itself(t)})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "launch.json"), record, 0o600); err != nil {
			t.Fatal(err)
		}
		_, stdout, _ := runHistory(id)
		_, asJSON, _ := runHistory("--json")
		if strings.Contains(stdout, "sglaunch was killed") != killed || strings.Contains(asJSON, `"killed": true`) != killed {
			t.Errorf("killed is %t: %s%s", killed, stdout, asJSON)
		}
	}
}

// itself is the process of the test.
func itself(t *testing.T) wire.Proc {
	t.Helper()
	p, err := proc.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return wire.Proc{PID: p.PID, Start: p.Start}
}

func TestNoHistory(t *testing.T) {
	t.Setenv("SGLAUNCH_STATE", filepath.Join(t.TempDir(), "state"))
	if code, stdout, stderr := runHistory(); code != 0 || stdout != "no launch is recorded yet\n" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if _, stdout, _ := runHistory("--json"); !strings.Contains(stdout, `"launches": []`) {
		t.Error(stdout)
	}
}

func TestDamagedHistory(t *testing.T) {
	dir := recorded(t)
	if err := os.WriteFile(dir.History(), bytes.Repeat([]byte("noise"), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runHistory()
	if code != 0 || stdout != "no launch is recorded yet\n" || !strings.Contains(stderr, "the history was damaged; it is kept as ") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}
