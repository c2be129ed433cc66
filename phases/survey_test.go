package phases

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// slowly is what a log means where every line goes the long way.
func slowly(log []byte) Report {
	t := NewTracker(BuiltinRules())
	t.brief, t.plodding = true, true
	t.Feed(log)
	t.Finish()
	return t.Report()
}

// inChunks is what it means where chunks of a size are surveyed.
func inChunks(t rapid.TB, log []byte, size int) Report {
	report, err := read(bytes.NewReader(log), BuiltinRules(), size)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestSurvey: what a survey passes over changes nothing, wherever the chunks end.
func TestSurvey(t *testing.T) {
	defer goleak.VerifyNone(t)
	same := func(t rapid.TB, log []byte, size int) {
		if diff := cmp.Diff(slowly(log), inChunks(t, log, size), cmp.AllowUnexported(Timestamp{})); diff != "" {
			t.Fatalf("(-the long way +surveyed in chunks of %d) of %q:\n%s", size, clip(log, 4000), diff)
		}
	}
	for _, path := range logs(t) {
		log, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		same(t, log, 256<<10)
		same(t, log, 500)
	}
	for _, log := range hardToPass {
		same(t, []byte(log), 256<<10)
	}
	rapid.Check(t, func(t *rapid.T) {
		log := []byte(rapid.SampledFrom([]string{"", serving}).Draw(t, "begin"))
		for range rapid.IntRange(1, 60).Draw(t, "lines") {
			for _, choice := range fragments {
				log = append(log, rapid.SampledFrom(choice).Draw(t, "part")...)
			}
		}
		same(t, log, rapid.IntRange(1, 5000).Draw(t, "chunk"))
	})
}

// TestSurveyTellsNothingApart: lines of many ranks that say nothing are passed
// over, but for the first of each.
func TestSurveyTellsNothingApart(t *testing.T) {
	var log strings.Builder
	log.WriteString(serving)
	for i := range 2000 {
		fmt.Fprintf(&log, "[2026-02-19 05:49:02 TP%d] nothing that anybody knows, %d\nnor this\n", i%8, i)
	}
	s := newSurvey(BuiltinRules())
	s.look([]byte(log.String()))
	passed := 0
	for _, r := range s.runs {
		passed += r.lines
	}
	if passed < 4000 || len(s.runs) > 30 {
		t.Errorf("%d of 4004 lines in %d runs", passed, len(s.runs))
	}
}

// TestReadFails: a stream that breaks is an error, and leaves nothing behind.
func TestReadFails(t *testing.T) {
	defer goleak.VerifyNone(t)
	broken := iotest.TimeoutReader(strings.NewReader(strings.Repeat(serving, 100_000)))
	if _, err := Read(broken, BuiltinRules()); err == nil || !strings.HasPrefix(err.Error(), "cannot read the output: ") {
		t.Errorf("got %v", err)
	}
	if r := inChunks(t, []byte(strings.Repeat("x", 100_000)), 1000); r.Lines != 1 {
		t.Errorf("%d lines", r.Lines)
	}
}
