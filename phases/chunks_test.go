package phases

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// observe feeds data in the given chunks and collects everything that is said.
func observe(data []byte, cuts []int) ([]Observation, Report) {
	tracker := NewTracker(BuiltinRules())
	var all []Observation
	from := 0
	for _, cut := range append(cuts, len(data)) {
		all = append(all, tracker.Feed(data[from:cut])...)
		from = cut
	}
	all = append(all, tracker.Finish()...)
	return all, tracker.Report()
}

// TestAnyChunking: the same bytes give the same observations.
func TestAnyChunking(t *testing.T) {
	var data [][]byte
	for _, path := range logs(t) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, content)
	}
	rapid.Check(t, func(t *rapid.T) {
		log := data[rapid.IntRange(0, len(data)-1).Draw(t, "log")]
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(log)), 0, 40).Draw(t, "cuts")
		sortInts(cuts)
		wantAll, wantReport := observe(log, nil)
		gotAll, gotReport := observe(log, cuts)
		if diff := cmp.Diff(wantAll, gotAll); diff != "" {
			t.Fatalf("observations (-at once +in chunks):\n%s", diff)
		}
		if diff := cmp.Diff(fmt.Sprintf("%+v", wantReport.Ranks), fmt.Sprintf("%+v", gotReport.Ranks)); diff != "" {
			t.Fatalf("ranks:\n%s", diff)
		}
	})
}

// TestByteByByte is the finest chunking.
func TestByteByByte(t *testing.T) {
	data, err := os.ReadFile("testdata/0.5.9/oom-capture.log")
	if err != nil {
		t.Fatal(err)
	}
	cuts := make([]int, len(data))
	for i := range cuts {
		cuts[i] = i
	}
	want, _ := observe(data, nil)
	got, _ := observe(data, cuts)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("observations (-at once +byte by byte):\n%s", diff)
	}
}

func sortInts(v []int) {
	for i := range v {
		for j := i; j > 0 && v[j] < v[j-1]; j-- {
			v[j], v[j-1] = v[j-1], v[j]
		}
	}
}

// FuzzTracker: nothing panics, and a cut anywhere changes nothing.
func FuzzTracker(f *testing.F) {
	for _, path := range logs(f) {
		if data, err := os.ReadFile(path); err == nil && len(data) < 6000 {
			f.Add(data, 100)
		}
	}
	f.Add([]byte("[2026-02-19 05:48:02 TP0] x[2026-02-19 05:48:02 TP1] y\r\n\x00\xff\x1b[31m"), 7)
	f.Add([]byte("\x1b]8;;http://x\x1b\\CUDA out of memory. Tried to allocate 24.00 MiB.\x1b]8;;\x1b\\\n\x1b]0;x\n"), 15)
	f.Add([]byte("{\"log\":\"[2026-02-19 05:48:02] server_args=\\n\"}\n100%|| 3/3 [00:01"), 20)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		cut = max(0, min(cut, len(data)))
		want, report := observe(data, nil)
		got, _ := observe(data, []int{cut})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("observations (-at once +cut at %d):\n%s", cut, diff)
		}
		if want := bytes.Count(data, []byte("\n")); report.Lines < want || report.Lines > want+1 {
			t.Fatalf("lines: got %d of %d", report.Lines, want)
		}
		if _, err := Read(bytes.NewReader(data), BuiltinRules()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHostileInput: long lines, zero bytes, thousands of ranks and sources,
// random bytes. Nothing panics and little is kept.
func TestHostileInput(t *testing.T) {
	random := make([]byte, 1<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	var ranks, sources, bars strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&ranks, "[2026-02-19 05:48:02 TP%d] Init torch distributed begin.\n", i)
		fmt.Fprintf(&sources, "svc-%d  | [2026-02-19 05:48:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n", i)
		fmt.Fprintf(&bars, "[AutoTuner]: Tuning op%d:  45%%|###  | 10/22 [06:15<07:51, 42.84s/profile]\r", i)
	}
	for name, input := range map[string][]byte{
		"zero":    make([]byte, 4<<20),
		"long":    bytes.Repeat([]byte("CUDA out of memory. "), 1<<20),
		"random":  random,
		"ranks":   []byte(ranks.String()),
		"sources": []byte(sources.String()),
		"bars":    []byte(bars.String()),
		"stamps":  bytes.Repeat([]byte("[2026-02-19 05:48:02 TP0] "), 4000),
		"escapes": bytes.Repeat([]byte("\x1b["), 1<<18),
		"strings": bytes.Repeat([]byte("\x1b]\x1bP"), 1<<18),
		"frames":  bytes.Repeat([]byte("Traceback (most recent call last):\n  File \"/x\", line 1, in load_model\nValueError: x\n"), 20000),
	} {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker(BuiltinRules())
			for len(input) > 0 {
				n := min(len(input), 64<<10)
				tracker.Feed(input[:n])
				input = input[n:]
			}
			tracker.Finish()
			if r := tracker.Report(); len(r.Echoes) > maxEchoes {
				t.Errorf("%d echoes", len(r.Echoes))
			}
		})
	}
}
