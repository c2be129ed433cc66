package phases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
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

// sameSurveyed fails where a survey of chunks of a size changes what a log means.
func sameSurveyed(t rapid.TB, log []byte, size int) {
	t.Helper()
	if diff := cmp.Diff(slowly(log), inChunks(t, log, size), cmp.AllowUnexported(Timestamp{})); diff != "" {
		t.Fatalf("(-the long way +surveyed in chunks of %d) of %q:\n%s", size, clip(log, 4000), diff)
	}
}

// otherwise is a failure that belongs to whoever spoke last.
const otherwise = "RuntimeError: Triton Error [CUDA]: device kernel image is invalid\n"

// serverStarts begins an attempt.
const serverStarts = "[2026-02-19 05:48:02] server_args=ServerArgs(tp_size=2)\n"

var twoServing = relayed(serving, func(int) string { return "a  | " }) + relayed(serving, func(int) string { return "b  | " })

// hardToSurvey are logs in which the relay of a line that says nothing matters.
var hardToSurvey = []string{
	// Who spoke last is whose an exception is that nobody relayed.
	twoServing + strings.Repeat("a  | nothing\nb  | nothing\n", 3) + "a  | nothing\n" + otherwise,
	twoServing + strings.Repeat("a  | nothing\nb  | nothing\n", 3) + "\n" + otherwise,
	// A stream is of nobody in particular until somebody relays a start.
	strings.Repeat("nothing\n", 3) + relayed(serving, func(int) string { return "a  | " }) + "[2026-02-19 05:48:03] nothing\n" + otherwise,
	// Each attempt has its own ranks.
	strings.Repeat(serving+"[2026-02-19 05:48:03 TP1] nothing\n[2026-02-19 05:48:03 TP1] nothing\n", 2),
	// The time of a fault without one is that of its own source's last line.
	relayed(serving+serving, func(n int) string { return []string{"a  | ", "b  | "}[n%2] }) +
		"a  | [2026-02-19 06:00:01] nothing\nb  | [2026-02-19 06:00:02] nothing\na  | RuntimeError: CUDA error: out of memory\n",
	// In an envelope more may stand than shows.
	attempt(1, `{"log":"FooError: bar\n"}`+"\n"),
	// Of a long line only the begin is read.
	attempt(1, "FooError"+strings.Repeat(" ", maxPiece)+"bar\n"),
	// An envelope may hold several lines, and they are one.
	inEnvelope("log", serverStarts) + strings.Repeat("\n"+inEnvelope("log", "nothing\nnothing\n"), 3) + "\n" + inEnvelope("log", "FooError: bar\n") + "\n",
	// A line that shows nothing is nobody's in particular.
	serving + relayed(serving, func(int) string { return "a  | " }) + "a  | nothing\n\x1b[0m\nz  | " + otherwise,
	// torch's number makes a rank.
	serving + "[rank3]: [2026-02-19 05:48:02] INFO:     192.0.2.1:5 - \"POST /generate HTTP/1.1\" 200 OK\n",
	// What stands before the exception is known by then.
	relayed(serving+strings.Repeat("nothing that anybody knows\n", 100)+"FooError: bar\n", func(int) string { return ">> " }),
}

// TestSurvey: what a survey passes over changes nothing, wherever the chunks end.
func TestSurvey(t *testing.T) {
	defer goleak.VerifyNone(t)
	same := sameSurveyed
	for _, path := range logs(t) {
		log, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		same(t, log, 256<<10)
		same(t, log, 500)
	}
	for _, log := range append(hardToPass, hardToSurvey...) {
		same(t, []byte(log), 256<<10)
		same(t, []byte(log), 150)
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

// relayed puts what a relay says before every line; the sources of several are
// told by the line's number.
func relayed(log string, relay func(n int) string) string {
	var all strings.Builder
	for n, line := range strings.SplitAfter(log, "\n") {
		if line != "" {
			all.WriteString(relay(n) + line)
		}
	}
	return all.String()
}

// sourced are the relays of logs with one and with several sources.
var sourced = map[string]func(n int) string{
	"plain":   func(int) string { return "" },
	"kubectl": func(n int) string { return fmt.Sprintf("2026-02-19T05:52:%02d.217487081Z ", n%60) },
	"cri":     func(n int) string { return fmt.Sprintf("2026-02-19T05:52:%02d.217487081+01:00 stdout F ", n%60) },
	"journal": func(n int) string { return fmt.Sprintf("Feb  9 05:52:%02d gpu7 sglang[1234]: ", n%60) },
	"compose": func(n int) string { return fmt.Sprintf("sglang-%d  | ", n%2) },
	"pods":    func(n int) string { return fmt.Sprintf("[pod/sglang-%d/server] ", n%3) },
	"mpirun":  func(n int) string { return fmt.Sprintf("[1,%d]<stderr>:", n%3) },
	"slurm":   func(n int) string { return fmt.Sprintf("%d: ", n%20) },
	"ranks":   func(n int) string { return fmt.Sprintf("[rank%d]: ", n%2) },
	"quoted":  func(int) string { return ">> " },
	"dated":   func(n int) string { return fmt.Sprintf("job %02d >> ", n%60) },
	"doubled": func(n int) string { return fmt.Sprintf("[2026-02-19 13:48:%02d] ", n%60) },
	"logging": func(n int) string { return fmt.Sprintf("2026-02-19 05:52:10,%03d - worker - INFO - ", n%1000) },
	"both":    func(n int) string { return fmt.Sprintf("sglang-%d  | >> ", n%2) },
}

// TestSurveyOfRelays: the same behind what relays put before a line.
func TestSurveyOfRelays(t *testing.T) {
	parts := [][]string{
		{"", "", "[2026-02-19 05:48:03 TP0] ", "[2026-02-19 05:48:04 TP1] ", "[05:48:05] "},
		{
			"nothing that anybody knows", "INFO:     192.0.2.1:5 - \"POST /generate HTTP/1.1\" 200 OK", "Decode batch, #running-req: 3, #token: 7",
			"Decode batch, #running-req: 3, #token: 7", "", "Killed", "ValueError: bad head dim 72", `  File "/x/sglang/srt/a.py", line 1, in load_model`,
			"Traceback (most recent call last):", "    return f(x)", "server_args=ServerArgs(tp_size=4)", "50% of it", "INFO 02-19 05:48:05 [a.py:1] b",
			"The server is fired up and ready to roll!", "Load weight begin. avail mem=78.11 GB", "\x1b[31mx", "\x1b]8;;x\x1b\\ValueError: y\x1b]8;;\x1b\\", "\x1b]0;z", "a\rb", ">> c", "stdout F d", "a | b",
			"gpu-7:17:99 [3] NCCL WARN Cuda failure 'out of memory'", "[rank1]: e", "[2026-02-19 05:48:02 TP1] glued",
		},
		{"\n"},
	}
	rapid.Check(t, func(t *rapid.T) {
		var log strings.Builder
		for range rapid.IntRange(0, 3).Draw(t, "starts") {
			log.WriteString(serving + serving)
		}
		for range rapid.IntRange(1, 80).Draw(t, "lines") {
			for _, choice := range parts {
				log.WriteString(rapid.SampledFrom(choice).Draw(t, "part"))
			}
		}
		relay := rapid.SampledFrom(slices.Sorted(maps.Keys(sourced))).Draw(t, "relay")
		all := relayed(log.String(), func(n int) string {
			if rapid.IntRange(0, 30).Draw(t, "straight") == 0 {
				return ""
			}
			return sourced[relay](n)
		})
		sameSurveyed(t, []byte(all), rapid.IntRange(50, 3000).Draw(t, "chunk"))
	})
}

// wrapped are logs whose lines read otherwise than they were printed.
var wrapped = map[string]func(line string) string{
	"docker":   func(line string) string { return inEnvelope("log", line+"\n") },
	"message":  func(line string) string { return inEnvelope("message", line) },
	"coloured": func(line string) string { return "\x1b[36msglang-1  |\x1b[0m " + line },
	"painted":  func(line string) string { return strings.ReplaceAll(line, "INFO", "\x1b[32mINFO\x1b[0m") + "\x1b[0m" },
	"both":     func(line string) string { return inEnvelope("log", "\x1b[36ma  |\x1b[0m "+line+"\r\n") },
}

// inEnvelope is what a collector makes of a line.
func inEnvelope(name, line string) string {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	return `{"` + name + `":` + string(text) + `,"stream":"stderr","time":"2026-02-19T05:52:10.217487081Z"}`
}

// wrap wraps each line of a log.
func wrap(log string, line func(string) string) string {
	var all strings.Builder
	for text := range strings.Lines(log) {
		all.WriteString(line(strings.TrimSuffix(text, "\n")) + "\n")
	}
	return all.String()
}

// TestSurveyOfWrapped: the same in colours and in envelopes.
func TestSurveyOfWrapped(t *testing.T) {
	for name, line := range wrapped {
		t.Run(name, func(t *testing.T) {
			for _, path := range logs(t) {
				log, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				sameSurveyed(t, []byte(wrap(string(log), line)), 4096)
			}
			for _, log := range append(hardToPass, hardToSurvey...) {
				sameSurveyed(t, []byte(wrap(log, line)), 300)
			}
			for _, log := range hardToLeave() {
				sameSurveyed(t, []byte(wrap(log, line)), 4096)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		line := wrapped[rapid.SampledFrom(slices.Sorted(maps.Keys(wrapped))).Draw(t, "wrapped")]
		log := wrap(rapid.SampledFrom([]string{"", serving}).Draw(t, "begin"), line)
		for range rapid.IntRange(1, 60).Draw(t, "lines") {
			text := ""
			for _, choice := range fragments {
				text += rapid.SampledFrom(choice).Draw(t, "part")
			}
			if rapid.IntRange(0, 20).Draw(t, "bare") > 0 {
				text = wrap(text, line)
			}
			log += text
		}
		sameSurveyed(t, []byte(log), rapid.IntRange(50, 5000).Draw(t, "chunk"))
	})
}

// TestSurveyPassesWrapped: lines that say nothing are passed over in colours and in
// envelopes as well.
func TestSurveyPassesWrapped(t *testing.T) {
	for name, line := range wrapped {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker(BuiltinRules())
			tracker.Feed([]byte(wrap(serving, line)))
			tracker.brief = true
			s := newSurvey(BuiltinRules())
			log := []byte(wrap(strings.Repeat(saysNothing, 500), line))
			s.look(log)
			if looked := lookedAt(tracker, s, log); looked > 2 {
				t.Errorf("%d of 2000 lines were looked at", looked)
			}
			if got := tracker.Report().Lines; got != 2004 {
				t.Errorf("%d lines", got)
			}
		})
	}
}

// lookedAt counts the lines of a surveyed chunk that a tracker looks at.
func lookedAt(tracker *Tracker, s *survey, chunk []byte) (looked int) {
	tracker.survey = s
	tracker.split.feed(chunk, func(p *piece) {
		looked++
		tracker.read(p)
	})
	return looked
}

// saysNothing are lines without news of a server that serves.
const saysNothing = `[2026-02-19 05:49:02 TP0] Decode batch, #running-req: 3, #token: 7
[2026-02-19 05:49:02 TP0] nothing that anybody knows
nor this
[2026-02-19 05:49:02] INFO:     192.0.2.1:5 - "POST /generate HTTP/1.1" 200 OK
`

// TestSurveyPassesRelays: lines that say nothing are passed over whoever relayed
// them, once the tracker knows who speaks.
func TestSurveyPassesRelays(t *testing.T) {
	lines := strings.Repeat(saysNothing, 500)
	for name, relay := range sourced {
		if name == "ranks" || name == "slurm" { // a number that a line's rank may come from; more sources than are told apart
			continue
		}
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker(BuiltinRules())
			tracker.Feed([]byte(relayed(strings.Repeat(serving, 12), func(n int) string { return relay(n / 4) })))
			tracker.brief = true
			survey := newSurvey(BuiltinRules())
			survey.habit = tracker.prefix.habit
			log := []byte(relayed(lines, relay))
			survey.look(log)
			if looked := lookedAt(tracker, survey, log); looked > 2 {
				t.Errorf("%d of 2000 lines were looked at", looked)
			}
			if got := tracker.Report().Lines; got != 2048 {
				t.Errorf("%d lines", got)
			}
		})
	}
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
	if looked := lookedAt(NewTracker(BuiltinRules()), s, []byte(log.String())); looked > 20 {
		t.Errorf("%d of 4004 lines were looked at", looked)
	}
	two := []byte(twoServing + strings.Repeat("a  | nothing\nb  | nothing\n", 1000))
	s.look(two)
	if looked := lookedAt(NewTracker(BuiltinRules()), s, two); looked > 20 {
		t.Errorf("%d of 2008 lines of two nodes were looked at", looked)
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
