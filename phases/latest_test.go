package phases

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// attempt is the output of one start that comes to little.
func attempt(n int, more string) string {
	return fmt.Sprintf("[2026-02-19 05:%02d:%02d] server_args=ServerArgs(attempt=%d)\n", n/60%60, n%60, n) +
		"[2026-02-19 05:48:03 TP0] Load weight begin. avail mem=78.11 GB\n" + more
}

// attempts are many starts, and what some of them say beside.
func attempts(count int, more func(n int) string) string {
	var all strings.Builder
	for n := range count {
		all.WriteString(attempt(n, more(n)))
	}
	return all.String()
}

// at gives a text to one attempt.
func at(which int, text string) func(int) string {
	return func(n int) string {
		if n == which {
			return text
		}
		return ""
	}
}

// hardToLeave are outputs with more starts than are told of, in which one of the
// first leaves something behind.
func hardToLeave() map[string]string {
	a, b := sourced["compose"](0), sourced["compose"](1)
	one := func(source string) func(int) string { return func(int) string { return source } }
	two := func(n int) string { return []string{a, b}[n/2%2] }
	const timeless = "[TP0] server_args=ServerArgs()\n[TP0] Load weight begin. avail mem=78.11 GB\n"
	many := func(more func(int) string) string { return attempts(200, more) }
	return map[string]string{
		"nothing":                             many(at(-1, "")),
		"before the first":                    "ValueError: x\n" + many(at(-1, "")),
		"ready without all that was expected": many(at(20, "[2026-02-19 05:48:03] The server is fired up and ready to roll!\n")),
		"a failure of the last that is told":  many(at(148, "ValueError: bad head dim 72\n")),
		"a failure of the first that is told": many(at(149, "ValueError: bad head dim 72\n")),
		"a node that says one thing":          relayed(many(at(-1, "")), one(a)) + relayed(attempt(7, ""), one(b)) + relayed(many(at(-1, "")), one(a)),
		"a node that never began":             relayed(many(at(-1, "")), one(a)) + b + "[2026-02-19 05:48:03 TP0] nothing\n" + relayed(many(at(-1, "")), one(a)),
		"two nodes":                           relayed(many(at(-1, "")), two),
		"two nodes and then one":              relayed(many(at(-1, "")), two) + relayed(many(at(-1, "")), one(a)),
		"a node that somebody else names":     many(at(20, "svc  | [2026-02-19 05:48:03 TP0] nothing\n")),
		"a node behind a bar":                 many(at(20, "a: 33%|###  | 1/3 [00:00<00:00]\rsvc  | [2026-02-19 05:48:03 TP0] nothing\n")),
		"a node behind its own bar":           many(at(20, "svc  | a: 33%|###  | 1/3 [00:00<00:00][2026-02-19 05:48:03 TP0] nothing\n")),
		"a node that draws over its own bar":  many(at(20, "svc  | a: 33%|###  | 1/3 [00:00<00:00]\r[2026-02-19 05:48:03 TP0] nothing\n")),
		"more nodes than are told apart":      many(at(20, relayed(strings.Repeat("[2026-02-19 05:48:03 TP0] nothing\n", 40), func(n int) string { return fmt.Sprintf("svc-%d  | ", n) }))),
		"a node behind what was just learned": attempts(20, at(-1, "")) + strings.Repeat(">> [2026-02-19 05:48:03 TP0] nothing\n", 3) +
			many(at(9, ">> svc  | a: 33%|###  | 1/3 [00:00<00:00][2026-02-19 05:48:03 TP0] nothing\n")),
		"a server that told of itself late": "[2026-02-19 05:48:02] Error in request: x\n" + strings.Repeat("nothing\n", 100) +
			"[2026-02-19 05:48:03 TP0] Load weight begin. avail mem=78.11 GB\n" + many(at(-1, "")),
		"a node behind its own bar, redrawn": many(at(20, "x\rsvc  | a: 33%|###  | 1/3 [00:00<00:00][2026-02-19 05:48:03 TP0] nothing\n")),
		"a start in an envelope, redrawn":    many(at(20, "x\r"+`{"log":"[2026-02-19 05:48:03] server_args=ServerArgs()\n"}`+"\n")),
		"a habit in SGLang's form, redrawn": attempts(20, at(-1, "")) + strings.Repeat("x\r[2026-02-19 13:48:02] [2026-02-19 05:48:03 TP0] nothing\n", 3) +
			strings.Repeat("nothing\n", 100) + many(at(199, "[2026-02-19 13:48:02] FooError: bar\n")),
		"a node that begins at the end": many(at(190, "svc  | [2026-02-19 05:48:03] server_args=ServerArgs()\n")),
		"the only time":                 strings.Repeat(timeless, 20) + "[2026-02-19 06:00:00 TP0] nothing\n" + strings.Repeat(timeless, 200) + "ValueError: x\n",
		"one node more than are told apart": relayed(attempts(600, at(79, "[2026-02-19 05:48:03 TP0] Memory pool end. avail mem=4 GB\n")), func(n int) string {
			if n == 160 {
				return "svc-99  | "
			}
			return fmt.Sprintf("svc-%d  | ", n/2%maxSources)
		}),
		"a node in colours":               many(at(20, "\x1b[32msvc  | [2026-02-19 05:48:03 TP0] nothing\n")),
		"a start in colours":              many(at(20, "\x1b[32m[2026-02-19 05:48:03]\x1b[0m server_args=ServerArgs()\n")),
		"a start in an envelope":          many(at(20, `{"log":"[2026-02-19 05:48:03] server_args=ServerArgs()\n"}`+"\n")),
		"a start behind a bar":            many(at(20, "a: 33%|###  | 1/3 [00:00<00:00]\r[2026-02-19 05:48:03] server_args=ServerArgs()\n")),
		"a start glued to a bar":          many(at(20, "a: 33%|###  | 1/3 [00:00<00:00][2026-02-19 05:48:03] server_args=ServerArgs()\n")),
		"a start glued to a message":      many(at(20, "[2026-02-19 05:48:03 TP0] nothing[2026-02-19 05:48:03] server_args=ServerArgs()\n")),
		"two starts in one line":          many(at(20, "[2026-02-19 05:48:03] server_args=ServerArgs([2026-02-19 05:48:03] server_args=\n")),
		"a start without a time":          many(at(20, "server_args=ServerArgs()\n")),
		"a start that is none":            many(at(20, "[2026-02-19 05:48:03] these are server_args=ServerArgs()\n")),
		"a start in a long line":          many(at(20, strings.Repeat("x", maxPiece+10)+"\r[2026-02-19 05:48:03] server_args=ServerArgs()\n")),
		"a start in the middle of a line": many(at(20, strings.Repeat("x", 4096)+"[2026-02-19 05:48:03] server_args=ServerArgs()\n")),
		"a habit":                         attempts(20, at(-1, "")) + strings.Repeat(">> [2026-02-19 05:48:03 TP0] nothing\n", 3) + many(at(199, ">> FooError: bar\n")),
		"half a habit": attempts(20, at(-1, "")) + ">> [2026-02-19 05:48:03 TP0] nothing\n" + attempts(100, at(-1, "")) +
			attempts(100, at(99, ">> [2026-02-19 05:48:03 TP0] nothing\n>> FooError: bar\n")),
		"a habit in SGLang's form": attempts(20, at(-1, "")) + strings.Repeat("[2026-02-19 13:48:02] [2026-02-19 05:48:03 TP0] nothing\n", 3) +
			many(at(20, "[2026-02-19 05:48:03] server_args=ServerArgs()\n")),
		"quoted":            relayed(many(at(-1, "")), one(">> ")),
		"lines ended twice": strings.ReplaceAll(many(at(-1, "")), "\n", "\r\n"),
	}
}

// TestLatest: what is left unread changes nothing that is told.
func TestLatest(t *testing.T) {
	for name, log := range hardToLeave() {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{300, 1000, 4096, 256 << 10} {
				sameSurveyed(t, []byte(log), size)
			}
		})
	}
	parts := [][]string{
		{"", "", "", "\x1b[32m", "a: 33%|###  | 1/3 [00:00<00:00]\r", ">> ", "svc  | "},
		{"", "", "[2026-02-19 05:48:03] ", "[2026-02-19 05:48:03 TP0] ", "[2026-02-19 05:48:04 TP1] ", "[2026-02-19 13:48:02] [2026-02-19 05:48:04 TP1] "},
		{
			"nothing that anybody knows", "Decode batch, #running-req: 3, #token: 7", "", "ValueError: bad head dim 72", "server_args=ServerArgs()",
			"The server is fired up and ready to roll!", "Load weight begin. avail mem=78.11 GB", "[2026-02-19 05:48:02 TP1] glued",
		},
		{"\n"},
	}
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.IntRange(0, 6).Draw(t, "odd lines")
		where := make(map[int]string)
		for range odd {
			var line strings.Builder
			for _, choice := range parts {
				line.WriteString(rapid.SampledFrom(choice).Draw(t, "part"))
			}
			where[rapid.IntRange(0, 220).Draw(t, "where")] += line.String()
		}
		log := attempts(rapid.IntRange(40, 220).Draw(t, "attempts"), func(n int) string { return where[n] })
		relay := sourced[rapid.SampledFrom(slices.Sorted(maps.Keys(sourced))).Draw(t, "relay")]
		straight := rapid.IntRange(0, 500).Draw(t, "straight")
		log = relayed(log, func(n int) string {
			if n == straight {
				return ""
			}
			return relay(n / 2)
		})
		sameSurveyed(t, []byte(log), rapid.IntRange(200, 4000).Draw(t, "chunk"))
	})
}

// TestLatestIsAllThatIsRead: of many starts hardly more are read than are told of,
// from a file or from a pipe.
func TestLatestIsAllThatIsRead(t *testing.T) {
	const all = 5000
	for name, relay := range sourced {
		if name == "slurm" || name == "ranks" { // nodes that begin seldom; lines whose rank a number may tell
			continue
		}
		t.Run(name, func(t *testing.T) {
			log := relayed(attempts(all, at(-1, "")), func(n int) string { return relay(n / 2) })
			tracker := NewTracker(BuiltinRules())
			tracker.brief = true
			read := 0
			skip := tracker.split.skip
			tracker.split.skip = func(from int) (size, lines int) {
				if size, lines = skip(from); lines == 0 {
					read++
				}
				return size, lines
			}
			if err := tracker.readStretches(bytes.NewReader([]byte(log)), 8<<10); !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if read > all/5 {
				t.Errorf("%d of %d lines were read", read, 2*all)
			}
			tracker.Finish()
			if r := tracker.Report(); len(r.Earlier) != maxEarlier || r.Lines != 2*all {
				t.Errorf("%d attempts are told of, %d lines", len(r.Earlier), r.Lines)
			}
		})
	}
}

// TestEarlierAreTold: how many attempts are not told of is told.
func TestEarlierAreTold(t *testing.T) {
	for count, want := range map[int]string{
		51: "this is attempt 51 of the file; before it:\n",
		52: "this is attempt 52 of the file; before it, of 51 the last 50:\n",
	} {
		var text strings.Builder
		if err := WriteTimeline(&text, explainBytes([]byte(attempts(count, at(-1, ""))))); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), want) {
			t.Errorf("%d attempts: no %q in\n%s", count, want, text.String())
		}
	}
}

// TestHasty: a hasty survey sees what decides about leaving as well as a full one
// does, and makes up for the rest where the chunk is read after all.
func TestHasty(t *testing.T) {
	for name, log := range hardToLeave() {
		full, hasty := newSurvey(BuiltinRules()), newSurvey(BuiltinRules())
		full.look([]byte(log))
		hasty.hasty = true
		hasty.look([]byte(log))
		if !slices.Equal(full.starts, hasty.starts) || full.hides != hasty.hides || full.lines != hasty.lines {
			t.Errorf("%s: %d and %d starts, hidden %t and %t", name, len(full.starts), len(hasty.starts), full.hides, hasty.hides)
		}
		if want, got := full.names(), hasty.names(); !slices.Equal(want, got) {
			t.Errorf("%s: sources %q and %q", name, want, got)
		}
		hasty.leave(10, 1)
		hasty.ready()
		if !slices.Equal(full.runs, hasty.runs) || hasty.unread != 10 {
			t.Errorf("%s: %d and %d runs", name, len(full.runs), len(hasty.runs))
		}
	}
}

// names are the sources that a stamped line named, in their order.
func (s *survey) names() (all []string) {
	for i, name := range s.voices.sources {
		if s.named>>i&1 != 0 {
			all = append(all, string(name))
		}
	}
	return all
}
