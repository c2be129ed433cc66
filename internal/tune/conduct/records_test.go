package conduct

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/tune"
)

// The account of a launch is its own: all trials share one name, and one that
// was refused before it began must not get its predecessor's.
func TestAccountIsTheLaunchsOwn(t *testing.T) {
	state := stateDir(t)
	began := time.Now()
	l, err := state.NewLaunch("tune-night", began)
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.NewAttempt(1)
	if err != nil {
		t.Fatal(err)
	}
	events := `{"event":"patch","fields":{"patch":"one","state":"applied"}}
no JSON
{"event":"patch","fields":{"patch":"two","state":"applied"}}
{"event":"patch","fields":{"patch":"two","effect":"effective"}}
{"event":"checked","fields":{"output_check":"passed"}}
{"event":"fault","text":"Xid 79 on GPU 1","fields":{"gpu":"GPU-1","xid":79}}
{"event":"fault","text":"not free","fields":{"holder":"process 7 holds 3 GiB","foreign":false}}
{"event":"fault","text":"not free","fields":{"holder":"process 8 of somebody else","foreign":true}}
{"event":"attempt_ended","fields":{"outcome":"crashed","cause":"oom_runtime","phase":"ready","text":"CUDA out of memory"}}
`
	if err := os.WriteFile(a.Events(), []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	got, ok := readAccount(state, "tune-night", "", began)
	want := account{dir: l.Path, attempt: a.Path, outcome: "crashed", cause: "oom_runtime", phase: "ready", text: "CUDA out of memory",
		checked: "ok", effects: map[string]string{"two": "effective"}, applied: map[string]bool{"one": true, "two": true},
		held: "process 7 holds 3 GiB", hardware: "Xid 79 on GPU 1"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(account{})); !ok || diff != "" {
		t.Error(diff)
	}
	if _, ok := readAccount(state, "tune-night", "", began.Add(time.Second)); ok {
		t.Error("a launch that began later has the account of the one before")
	}
	if _, ok := readAccount(state, "tune-night", l.ID, began.Add(time.Hour)); !ok {
		t.Error("a launch is not found by its ID")
	}
	if _, ok := readAccount(state, "other", "", began); ok {
		t.Error("another name has the account")
	}
}

// The excerpt holds the newest lines, bars by their newest state, no secret.
func TestExcerpt(t *testing.T) {
	a := account{attempt: t.TempDir()}
	text := strings.Repeat("a line\n", 30) + "\r 10%|#| 1/9\r 20%|##| 2/9\n\x1b[31mwith --api-key sk-SECRETSECRET\x1b[0m\n\n"
	if err := os.WriteFile(a.log(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := a.excerpt()
	if len(got) != excerptLines || got[excerptLines-2] != "20%|##| 2/9" || strings.Contains(got[excerptLines-1], "SECRET") {
		t.Errorf("%q", got)
	}
}

// What a journal keeps of a study has no secrets, and what a night is fingerprinted
// by does not change with it.
func TestStudyIsMasked(t *testing.T) {
	s := smallStudy(func(s *tune.Study) {
		s.Loads[0].Args = []string{"--api-key", "sk-SECRETSECRET"}
		s.Takeover = tune.Takeover{Launch: "x", Drain: []string{"router", "--token=SECRETSECRET"}}
	})
	m := masked(s)
	if strings.Contains(strings.Join(append(m.Loads[0].Args, m.Takeover.Drain...), " "), "SECRET") {
		t.Errorf("%q %q", m.Loads[0].Args, m.Takeover.Drain)
	}
	if s.Loads[0].Args[1] != "sk-SECRETSECRET" {
		t.Error("the study itself was changed")
	}
}
