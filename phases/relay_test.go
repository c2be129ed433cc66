package phases

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// relays are what stands between a server and a saved log: each puts something
// before every line.
var relays = map[string]func(n int, line string) string{
	"cri":          func(n int, line string) string { return "2026-02-19T05:52:10.21748708+08:00 stdout F " + line },
	"docker":       func(n int, line string) string { return "2026-02-19T05:52:10.217487081Z " + line },
	"kubectl":      func(n int, line string) string { return "[pod/sglang-0/server] " + line },
	"compose":      func(n int, line string) string { return "sglang-1  | " + line },
	"build":        func(n int, line string) string { return "[2026-02-19T05:52:10.702Z] " + line },
	"dotted":       func(n int, line string) string { return "[sglang]     | " + line },
	"ray":          func(n int, line string) string { return "(SGLangEngine pid=100863) " + line },
	"ray-ip":       func(n int, line string) string { return "(SGLangEngine pid=100863, ip=192.0.2.7) " + line },
	"journal":      func(n int, line string) string { return "Feb 19 05:52:10 gpu-7 sglang[4711]: " + line },
	"iso":          func(n int, line string) string { return "2026-02-19T05:52:10+0100 gpu-7 sglang[4711]: " + line },
	"journal-bare": func(n int, line string) string { return "Feb 19 05:52:10 sglang[4711]: " + line },
	"logging":      func(n int, line string) string { return "2026-02-19 05:52:10,291 - worker - INFO - " + line },
	"mpirun":       func(n int, line string) string { return "[1,0]<stderr>:" + line },
	"slurm":        func(n int, line string) string { return "0: " + line },
	"export":       func(n int, line string) string { return "ERROR 2026-02-19T05:52:10.509514570Z " + line },
	"tracing":      func(n int, line string) string { return "2026-02-19T05:52:10.922414Z  INFO engine.launch: " + line },
	"codes": func(n int, line string) string {
		return "[2m2026-02-19T05:52:10.922414Z[0m [32m INFO[0m [2mengine.launch[0m[2m:[0m " + line
	},
	"gh":     func(n int, line string) string { return "build\tRun server\t2026-02-19T05:52:10.1234567Z " + line },
	"cat-n":  func(n int, line string) string { return fmt.Sprintf("%6d\t", n+1) + line },
	"quote":  func(n int, line string) string { return "> " + line },
	"border": func(n int, line string) string { return fmt.Sprintf("│ %-100s │", line) },
	"colour": func(n int, line string) string { return "\x1b[32m" + line + "\x1b[0m" },
	"json": func(n int, line string) string {
		data, _ := json.Marshal(map[string]string{"log": line + "\n", "stream": "stderr", "time": "2026-02-19T05:52:10Z"})
		return string(data)
	},
	"collector": func(n int, line string) string {
		data, _ := json.Marshal(map[string]string{"level": "info", "message": line, "time": "2026-02-19T05:52:10Z"})
		return string(data)
	},
}

// TestRelays: what a log means does not depend on who relayed it.
func TestRelays(t *testing.T) {
	for name, relay := range relays {
		t.Run(name, func(t *testing.T) {
			for _, path := range logs(t) {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				plain := strings.ReplaceAll(string(data), "\r", "\n")
				var relayed strings.Builder
				for n, line := range strings.Split(strings.TrimSuffix(plain, "\n"), "\n") {
					relayed.WriteString(relay(n, line) + "\n")
				}
				want, got := verdictOf(explainBytes([]byte(plain))), verdictOf(explainBytes([]byte(relayed.String())))
				if want != got {
					t.Errorf("%s through %s:\n got %s\nwant %s", path, name, got, want)
				}
			}
		})
	}
}

// habits are relays that nobody here knows: what they put before a line is
// learned from SGLang's own lines.
var habits = map[string]func(n int, line string) string{
	"quoted": func(n int, line string) string { return "> " + line },
	"indent": func(n int, line string) string { return "    " + line },
	"stern":  func(n int, line string) string { return "sglang-0 server " + line },
	"slime":  func(n int, line string) string { return "[2026-02-19T05:52:10+08:00] job-3da56 >> " + line },
	"loguru": func(n int, line string) string {
		return fmt.Sprintf("2026-02-19 05:52:%02d.123 | worker - ", n%60) + line
	},
	"doubled": func(n int, line string) string {
		return fmt.Sprintf("[2026-02-19 13:52:%02d] ", n%60) + line
	},
	"elastic":  func(n int, line string) string { return fmt.Sprintf("Feb 19, 2026 @ 05:52:%02d.892    ", n%60) + line },
	"torchrun": func(n int, line string) string { return "[default0]:" + line },
}

// TestHabits: an unknown relay is learned where SGLang said enough before it
// mattered.
func TestHabits(t *testing.T) {
	for name, relay := range habits {
		t.Run(name, func(t *testing.T) {
			for _, path := range logs(t) {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				plain := strings.ReplaceAll(string(data), "\r", "\n")
				if strings.Count(plain, "\n[202") < 5 {
					continue
				}
				var relayed strings.Builder
				for n, line := range strings.Split(strings.TrimSuffix(plain, "\n"), "\n") {
					relayed.WriteString(relay(n, line) + "\n")
				}
				want, got := verdictOf(explainBytes([]byte(plain))), verdictOf(explainBytes([]byte(relayed.String())))
				if want != got {
					t.Errorf("%s through %s:\n got %s\nwant %s", path, name, got, want)
				}
			}
		})
	}
}

// TestHabitIsNoBar: what is glued before a line by chance is no relay.
func TestHabitIsNoBar(t *testing.T) {
	var b habit
	bar := []byte("Capturing batches (bs=4 avail_mem=7.67 GB):   0%|          | 0/4 [00:00<?, ?it/s]")
	for range 2 {
		if b.learn(bar) || b.known() {
			t.Error("a bar became a habit")
		}
	}
	if b.learn([]byte("12:01 a ")) || !b.learn([]byte("12:02 a ")) || b.length([]byte("13:59 a text")) != 8 {
		t.Error("two lines with the same prefix made no habit")
	}
	if b.learn([]byte("> ")) || b.length([]byte("12:02 b text")) != 0 {
		t.Error("another prefix was taken for the habit")
	}
}

// verdictOf is what a relay must not change.
func verdictOf(r Report) string {
	cause, root := "none", "none"
	if r.Cause != nil {
		cause = *r.Cause
	}
	if r.Root != nil {
		root = fmt.Sprintf("line %d of %s: %s", r.Root.Line, r.Root.Rank, r.Root.Text)
	}
	return fmt.Sprintf("%s ready=%t failed=%t cause=%s root=%s ranks=%d", r.Phase, r.Ready, r.Failed, cause, root, len(r.Ranks))
}

// TestSeveralNodesInOneStream: two tasks of one launch, each with its own ranks.
func TestSeveralNodesInOneStream(t *testing.T) {
	log := `0: [2026-02-19 05:48:02] server_args=ServerArgs(nnodes=2)
1: [2026-02-19 05:48:02] server_args=ServerArgs(nnodes=2)
0: [2026-02-19 05:48:02 TP0] Init torch distributed begin.
1: [2026-02-19 05:48:02 TP1] Init torch distributed begin.
0: [2026-02-19 05:48:09 TP0] Load weight begin. avail mem=138.20 GB
1: [2026-02-19 05:48:10 TP1] Scheduler hit an exception: Traceback (most recent call last):
1:   File "/x/sglang/srt/managers/scheduler.py", line 2937, in run_scheduler_process
1:     Scheduler(...)
0: [2026-02-19 05:48:10 TP0] Found local HF snapshot for a/b at /c; skipping download.
1: ValueError: bad head dim 72
`
	r := explainBytes([]byte(log))
	want := map[string]Phase{"node0/TP0": LoadingWeights, "node1/TP1": DistributedInit}
	if !r.Failed || r.Root == nil || r.Root.Rank != "node1/TP1" || r.Root.Text != "ValueError: bad head dim 72" {
		t.Errorf("root: %+v", r.Root)
	}
	for name, phase := range want {
		if got, ok := r.Ranks[name]; !ok || got != phase {
			t.Errorf("%s: got %v, want %v in %v", name, got, phase, r.Ranks)
		}
	}
}

// TestExcerptOfOneOfSeveral: an output may begin inside a traceback, before a line
// that only a server prints tells that its relay is one; a bar of others, which
// nobody relayed, outlives nothing of it.
func TestExcerptOfOneOfSeveral(t *testing.T) {
	log := `(Worker pid=7)   File "/x/sglang/srt/managers/schedule_batch.py", line 1602, in get_model_worker_batch
(Worker pid=7)     f(x)
(Worker pid=7) RuntimeError: CUDA error: an illegal memory access was encountered
(Worker pid=7) 
(Worker pid=7) [2025-05-23 18:02:42] Received sigquit from a child process. It usually means the child failed.
(Worker pid=5) [2025-05-23 18:02:43] Cache flushed successfully!
Capturing batches (avail_mem=29.01 GB):  87%|########7 | 20/23 [00:07<00:00,  3.19it/s]
`
	r := explainBytes([]byte(log))
	if r.Root == nil || r.Root.Line != 3 || *r.Cause != "cuda_illegal_access" {
		t.Errorf("%s", verdictOf(r))
	}
}

// TestReadyNeedsEveryNode: the first of two nodes alone is not a ready launch.
func TestReadyNeedsEveryNode(t *testing.T) {
	head := "a-1  | [2026-02-19 05:48:02] server_args=ServerArgs(nnodes=2)\nb-1  | [2026-02-19 05:48:02] server_args=ServerArgs(nnodes=2)\n"
	first := head + "b-1  | [2026-02-19 05:49:02] Dummy health check server started in background thread at 192.0.2.14:8000\n"
	if explainBytes([]byte(first)).Ready {
		t.Error("ready although one node has not said so")
	}
	if !explainBytes([]byte(first + "a-1  | [2026-02-19 05:49:12] The server is fired up and ready to roll!\n")).Ready {
		t.Error("not ready although both nodes have said so")
	}
}

// TestHabitOfADullLine: a line that nothing marks is read as well, since behind
// the prefix an exception may stand.
func TestHabitOfADullLine(t *testing.T) {
	log := strings.Repeat("~ [2026-02-19 05:48:02 TP0] Load weight begin. avail mem=138.20 GB\n", 3) + "~ FooError: bar\n"
	for name, explain := range map[string]func() Report{
		"live": func() Report { return explainBytes([]byte(log)) },
		"file": func() Report { r, _ := Read(strings.NewReader(log), BuiltinRules()); return r },
	} {
		if r := explain(); !r.Failed || r.Root == nil || r.Root.Text != "FooError: bar" {
			t.Errorf("%s: %s", name, verdictOf(r))
		}
	}
}
