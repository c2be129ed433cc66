package phases

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestKinds fails a launch in the way of each row of testdata/kinds.txt: in a
// phase, at a frame, with a last line. The row says what the cause is.
func TestKinds(t *testing.T) {
	data, err := os.ReadFile("testdata/kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	for n, row := range strings.Split(string(data), "\n") {
		if row == "" || row[0] == '#' {
			continue
		}
		cells := strings.SplitN(row, " | ", 4)
		if len(cells) != 4 {
			t.Fatalf("kinds.txt:%d: want cause | phase | frame | last line", n+1)
		}
		cause, frame, last := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[2]), cells[3]
		phase, err := ParsePhase(strings.TrimSpace(cells[1]))
		if err != nil {
			t.Fatalf("kinds.txt:%d: %v", n+1, err)
		}
		log := failingLaunch(phase, frame, last)
		r := explainBytes([]byte(log))
		switch {
		case !r.Failed || r.Cause == nil || *r.Cause != cause:
			t.Errorf("kinds.txt:%d: %q is %s, want %s", n+1, last, causeOf(r), cause)
		case r.Root == nil || !strings.Contains(last, r.Root.Text):
			t.Errorf("kinds.txt:%d: the root is %+v, want %q", n+1, r.Root, last)
		case max(r.Phase, phase) != r.Phase:
			t.Errorf("kinds.txt:%d: phase %s, want %s", n+1, r.Phase, phase)
		}
	}
}

func causeOf(r Report) string {
	if r.Cause == nil || !r.Failed {
		return fmt.Sprintf("no failure (%s)", r.Phase)
	}
	return *r.Cause
}

// failingLaunch is the output of a launch with two ranks that gets to a phase and
// fails there with a traceback of TP1. The frame is FILE FUNCTION; a file that
// does not begin with / lies in sglang/srt.
func failingLaunch(phase Phase, frame, last string) string {
	const srt = "/usr/local/lib/python3.12/dist-packages/sglang/srt/"
	var b strings.Builder
	say := func(rank, text string) { fmt.Fprintf(&b, "[2026-05-04 10:00:00%s] %s\n", rank, text) }
	at := func(file, function string) {
		if file[0] != '/' {
			file = srt + file
		}
		fmt.Fprintf(&b, "  File %q, line 613, in %s\n    ...\n", file, function)
	}
	file, function, _ := strings.Cut(frame, " ")
	if phase == Starting {
		b.WriteString("Traceback (most recent call last):\n")
		at("/usr/local/lib/python3.12/dist-packages/sglang/launch_server.py", "<module>")
		at(file, function)
		b.WriteString(last + "\n")
		return b.String()
	}
	say("", "server_args=ServerArgs(model_path='/models/m', tp_size=2)")
	for _, step := range []struct {
		phase Phase
		text  string
	}{
		{DistributedInit, "Init torch distributed begin."},
		{LoadingWeights, "Init torch distributed ends. elapsed=1.20 s, mem usage=1.31 GB"},
		{LoadingWeights, "Load weight begin. avail mem=77.10 GB"},
		{WeightsLoaded, "Load weight end. elapsed=9.00 s, type=FooForCausalLM, avail mem=38.20 GB, mem usage=38.90 GB."},
		{KVCache, "KV Cache is allocated. #tokens: 401000, K size: 12.20 GB, V size: 12.20 GB"},
		{GraphCapture, "Memory pool end. avail mem=12.10 GB"},
		{GraphCapture, "Capture cuda graph begin. This can take up to several minutes. avail mem=11.90 GB"},
		{Warmup, "Capture cuda graph end. Time elapsed: 9.10 s. mem usage=1.10 GB. avail mem=10.80 GB."},
		{Warmup, "max_total_num_tokens=401000, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=32768, available_gpu_mem=10.80 GB"},
	} {
		if step.phase <= phase {
			say(" TP0", step.text)
			say(" TP1", step.text)
		}
	}
	if phase >= Warmup {
		say("", "INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)")
	}
	if phase >= Ready {
		say("", "The server is fired up and ready to roll!")
		say(" TP0", "Prefill batch, #new-seq: 2, #new-token: 512, #cached-token: 0, token usage: 0.01, #running-req: 2, #queue-req: 0, ")
	}
	say(" TP1", "Scheduler hit an exception: Traceback (most recent call last):")
	if phase >= Warmup {
		at("managers/scheduler.py", "event_loop_overlap")
	} else {
		at("managers/scheduler.py", "run_scheduler_process")
	}
	at(file, function)
	b.WriteString(last + "\n\n")
	say("", "Received sigquit from a child process. It usually means the child failed.")
	return b.String()
}
