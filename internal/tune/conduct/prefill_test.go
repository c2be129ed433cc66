package conduct

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
)

// The first prompts are those of the first batch that SGLang prefills, as each
// release prints it; a health probe is none.
func TestFirstPrompts(t *testing.T) {
	const health = "[2026-02-19 22:00:00 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, \n"
	tests := []struct {
		name, output string
		want         *tune.Opening
	}{
		{"0.4.6", "[2025-02-09 11:06:40 TP0] Prefill batch. #new-seq: 2, #new-token: 632, #cached-token: 126, token usage: 0.00, #running-req: 0, #queue-req: 0\n", &tune.Opening{Computed: 632, Cached: 126}},
		{"0.5.4", "[2025-11-09 11:06:40 TP0] Prefill batch [17], #new-seq: 1, #new-token: 1, #cached-token: 1023, token usage: 0.00, #running-req: 0, #queue-req: 0, \n", &tune.Opening{Computed: 1, Cached: 1023}},
		{"0.5.18", health + "[2026-09-19 22:00:00 DP1 TP1] Prefill batch, #new-seq: 1, #new-token: 1024, #cached-token: 0, full token usage: 0.00, mamba usage: 0.00, #running-req: 0, #queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 3.11\n" +
			"[2026-09-19 22:00:01 DP1 TP1] Prefill batch, #new-seq: 8, #new-token: 1, #cached-token: 1023, token usage: 0.01\n", &tune.Opening{Computed: 1024}},
		{"a probe alone", health, nil},
		{"another server", "INFO: 127.0.0.1 - \"POST /generate HTTP/1.1\" 200 OK\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, openingOf([]byte(tt.output))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a run opens with is looked for in what was printed since the flush, also
// where the output was rotated before.
func TestOpeningSinceAPlace(t *testing.T) {
	state := statedir.Dir{State: t.TempDir()}
	if err := os.Mkdir(filepath.Join(state.State, "launches"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := state.NewLaunch("tune-night", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.NewAttempt(1)
	if err != nil {
		t.Fatal(err)
	}
	batch := func(cached string) string {
		return "Prefill batch, #new-seq: 1, #new-token: 100, #cached-token: " + cached + ", token usage: 0.01\n"
	}
	write := func(path, text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(filepath.Dir(a.Log()), "server.log.000000000000000"), batch("700"))
	write(a.Log(), batch("800"))
	at := &attempt{site: &site{state: state}, server: &Launch{Name: "tune-night"}, began: l.Began()}
	end, ok := at.logEnd()
	if want := int64(len(batch("700") + batch("800"))); !ok || end != want {
		t.Fatalf("it has %d bytes, %t, want %d", end, ok, want)
	}
	if o := at.opening(end); o != nil {
		t.Errorf("nothing was printed since, and it says %+v", o)
	}
	write(a.Log(), "Cache flushed successfully!\n"+batch("0"))
	for from, want := range map[int64]int{end: 0, 0: 700, int64(strings.Index(batch("700"), "\n")) + 1: 800} {
		if o := at.opening(from); o == nil || o.Cached != want {
			t.Errorf("from byte %d on it says %+v, want %d from the cache", from, o, want)
		}
	}
}
