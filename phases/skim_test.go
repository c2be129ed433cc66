package phases

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// everything is all that a tracker can be asked for after an output.
func everything(t *Tracker, log []byte, chunk int) (all []string) {
	tell := func(observed []Observation) {
		for _, o := range observed {
			all = append(all, fmt.Sprintf("%+v", o))
		}
	}
	for len(log) > 0 {
		n := min(len(log), chunk)
		tell(t.Feed(log[:n]))
		log = log[n:]
	}
	tell(t.Finish())
	all = append(all, fmt.Sprint("SGLang: ", t.IsSGLang()))
	for rank := range t.Ranks() {
		all = append(all, rank+" said last: "+strings.Join(t.LastLines(rank), "\n"))
	}
	var report bytes.Buffer
	if err := WriteTimeline(&report, t.Report()); err != nil {
		return append(all, err.Error())
	}
	stamps := make([]string, len(t.nodes))
	for i, n := range t.nodes {
		stamps[i] = n.stamp.time().String()
	}
	return append(all, report.String(), strings.Join(stamps, " "))
}

// fragments of lines, in the order in which a line is put together.
var fragments = [][]string{
	{"", "", "", "sglang-1  | ", "[pod/a/b] ", "2: ", "2025-07-25T07:53:08.217Z ", "[rank3]: ", "Feb 19 05:52:10 gpu-7 sglang[4711]: ", "\x1b[32m", "[31m", "> ", "│ ", "│", "[2m2026-02-19T05:52:10.922414Z[0m [32m INFO[0m [2ma[0m[2m:[0m ", "\x1b(B", "\x1b]8;;x\x1b\\", "\x1b]0;"},
	{
		"", "", "[2026-02-19 05:48:02] ", "[2026-02-19 05:48:03 TP0] ", "[2026-02-19 05:48:03 TP1] ", "[05:48:03 DP1 TP3] ", "[TP2] ",
		"[abcd-ef-gh ij:kl:mn TP0] ", "2026-02-19 05:52:10 TP0] ", "[2026-02-19 13:48:02] [TP1] ", "[2026-02-19 13:48:02] [2026-02-19 05:48:02 TP1] ",
	},
	{
		"nothing that anybody knows", "INFO:     192.0.2.1:5 - \"POST /generate HTTP/1.1\" 200 OK", "", " ", "Killed", "Aborted (core dumped)",
		"Decode batch, #running-req: 3, #token: 7", "Prefill batch, #new-seq: 1, #running-req: 1", "Traceback (most recent call last):",
		`  File "/x/sglang/srt/a.py", line 1, in load_model`, `  File \"/x/sglang/srt/a.py\", line 1, in load_model`, "job >> (E pid=7) [2026-02-19 05:48:02 TP0] nothing", "    return f(x)", "ValueError: bad head dim 72", "something.Odd: text", "Exit",
		"The server is fired up and ready to roll!", "server_args=ServerArgs(tp_size=4)", "Load weight begin. avail mem=78.11 GB",
		"Loading safetensors checkpoint shards:  33%|###  | 1/3 [00:00<00:00,  6.66it/s]", "Capture cuda graph begin.", "50% of it",
		"gpu-7:17:99 [3] NCCL WARN Cuda failure 'out of memory'", "During handling of the above exception, another exception occurred:",
		"CUDA out of memory. Tried to allocate 24.00 MiB.", "KV cache pool is full. Retract requests. #retracted_reqs: 1",
		"\x1b[31mERROR\x1b[0m something", `{"log":"[2026-02-19 05:48:02] Decode batch\n"}`, "Terminated", "corrupted double-linked list",
		"a [2026-02-19 05:48:02 TP0] Memory pool end. avail mem=4 GB", "SIGTERM received, draining",
		"Aborted                                                                 ", "AssertionError   │", "ValueError: bad   │", "Decode batch, \x1b]0;x\a#running-req: 3",
		"\x1b]8;;http://x\x1b\\CUDA out of memory. Tried to allocate 24.00 MiB.\x1b]8;;\x1b\\", "Decode batch, \x1b]0;x #running-req: 3", "\x1b_x\x1b\\Killed", "\x1bP1Killed",
		"Decode batch, #running-req: 3, #token: [2026-02-19 05:48:02 TP1] CUDA out of memory. Tried to allocate 24.00 MiB.",
	},
	{"\n", "\n", "\n", "\n", "\r", "\r\n"},
}

// serving is the begin of a log in which requests and batches are no news.
const serving = `[2026-02-19 05:48:02] server_args=ServerArgs(tp_size=2)
[2026-02-19 05:48:03 TP0] Load weight begin. avail mem=78.11 GB
[2026-02-19 05:48:03] The server is fired up and ready to roll!
[2026-02-19 05:48:03 TP0] Decode batch, #running-req: 3, #token: 7
`

// hardToPass are logs in which a line that says nothing still does something.
var hardToPass = []string{
	// A batch ends the traceback before it, though that was harmless: what follows is another's.
	serving + `[2026-02-19 05:48:04] post-warmup freeze_gc failed: Traceback (most recent call last):
[2026-02-19 05:48:05 TP0] Decode batch, #running-req: 3, #token: 9
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.
`,
	// A rank that was only seen at a request makes an SGLang server of it when it says anything else.
	`[2026-02-19 05:48:03 TP0] INFO:     192.0.2.1:5 - "POST /generate HTTP/1.1" 200 OK
[2026-02-19 05:48:04 TP0] nothing that anybody knows
`,
	`[2026-02-19 05:48:03 TP0] INFO:     192.0.2.1:5 - "POST /generate HTTP/1.1" 200 OK
[2026-02-19 05:48:04 TP0] nothing that anybody knows
sglang-1  | [2026-02-19 05:48:05 TP1] Load weight begin. avail mem=78.11 GB
`,
	// A line without a relay, among those with one, is of another node.
	`sglang-1  | [2026-02-19 05:48:02] server_args=ServerArgs(tp_size=2)
sglang-1  | [2026-02-19 05:48:03 TP0] Load weight begin. avail mem=78.11 GB
[2026-02-19 05:48:04 TP0] nothing that anybody knows
`,
	// Of what a line shows, an escape sequence is no part.
	serving + "[2026-02-19 05:48:03 TP0] Decode batch, \x1b]0;x\a#running-req: 3\n",
	serving + "[2026-02-19 05:48:03 TP0] Decode batch, \x1b]8;;x\x1b\\#running-req: 3\n\x1b]0;" + otherwise,
	// A relay's time in SGLang's own form is none of SGLang's.
	strings.Repeat("[2026-02-19 13:48:02] [2026-02-19 05:48:02 TP0] Load weight begin. avail mem=78.11 GB\n", 2) +
		"[2026-02-19 13:48:02] nothing\n[2026-02-19 13:48:02] FooError: bar\n",
	serving + "[2026-02-19 13:48:02] [TP1] nothing\n",
	serving + strings.Repeat("[2026-02-19 13:48:02] [2026-02-19 05:48:02 TP0] nothing\n", 2) +
		"[2026-02-19 13:48:09] INFO:     192.0.2.1:5 - \"POST /generate HTTP/1.1\" 200 OK\n",
	// Copied from a terminal, a message is as wide as that.
	serving + "[2026-02-19 05:48:02 TP0] nothing\nAborted" + strings.Repeat(" ", 90) + "\n",
	// What is drawn over a text is a line as well.
	"[2026-02-19 05:48:02] server_args=ServerArgs(tp_size=2)\nnothing that anybody knows\rValueError: bad head dim 72\n",
}

// TestShortWays: a line that is passed over says and leaves behind just what it
// would have the long way.
func TestShortWays(t *testing.T) {
	same := func(t rapid.TB, log []byte, chunk int) {
		plodding := NewTracker(BuiltinRules())
		plodding.plodding = true
		want, got := everything(plodding, log, chunk), everything(NewTracker(BuiltinRules()), log, chunk)
		if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
			t.Fatalf("(-the long way +short ways) of %q:\n%s", clip(log, 4000), diff)
		}
	}
	for _, path := range logs(t) {
		log, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		same(t, log, 64<<10)
	}
	for _, log := range hardToPass {
		same(t, []byte(log), 64<<10)
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

func sorted(lines []string) map[string]int {
	counted := make(map[string]int)
	for _, line := range lines {
		counted[line]++
	}
	return counted
}
