package rehearsal

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// milestones in the order in which each rank prints them.
var milestones = []string{
	"Init torch distributed begin.", "Init torch distributed ends. elapsed=", "Load weight begin. avail mem=",
	"Load weight end. elapsed=", "KV Cache is allocated. #tokens: ", "Memory pool end. avail mem=",
	"Capture cuda graph begin. This can take up to several minutes. avail mem=", "Capture cuda graph end. Time elapsed: ",
}

func TestHealthyWithEightRanks(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 20)
	p := play(t, s, launchArgs(s, 8))

	p.sees("Init torch distributed begin.")
	if code := p.get("/health"); code != 0 {
		t.Errorf("/health answered %d during the load; the port must not be bound", code)
	}
	p.sees("Uvicorn running on")
	if code := p.get("/health"); code != 503 && code != 200 {
		t.Errorf("/health answered %d before ready", code)
	}
	p.sees("The server is fired up and ready to roll!")
	until(t, "/health answers 200", func() bool { return p.get("/health") == 200 })
	for path, want := range map[string]int{"/model_info": 200, "/v1/models": 200, "/server_info": 200, "/metrics": 404, "/nowhere": 404} {
		if code := p.get(path); code != want {
			t.Errorf("%s answered %d, want %d", path, code, want)
		}
	}
	checkTree(t, p, 8)
	checkOrder(t, p, 8)

	p.signal(syscall.SIGTERM)
	if how := p.ends(); how != "signal: killed" {
		t.Errorf("a drained server ends by its own SIGKILL, this one by %q", how)
	}
	p.sees("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
	p.sees("Gracefully exiting... Remaining number of requests 0.")
	until(t, "the whole tree is gone", func() bool { return !groupAlive(p.group) })
}

// checkTree looks at the processes as a supervisor would: titles, parents, environments.
func checkTree(t *testing.T, p *server, ranks int) {
	t.Helper()
	for r := range ranks {
		found := p.titled(fmt.Sprintf("sglang::scheduler_TP%d", r))
		if len(found) != 1 || found[0].parent != p.group || found[0].group != p.group {
			t.Fatalf("rank %d: want one child of main in its group, got %v", r, found)
		}
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", found[0].pid))
		if err != nil || len(environ) == 0 || strings.Trim(string(environ), "\x00") != "" {
			t.Errorf("rank %d: environ is to be all zeroes, got %d bytes, %v", r, len(environ), err)
		}
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", found[0].pid))
		if got := strings.TrimSpace(string(comm)); got != "sglang::schedul" {
			t.Errorf("rank %d: comm is %q", r, got)
		}
	}
	if n := len(p.titled("sglang::detokenizer")); n != 1 {
		t.Errorf("%d detokenizers, want 1", n)
	}
	var main process
	for _, q := range p.tree() {
		if q.pid == p.group {
			main = q
		}
	}
	if !strings.Contains(main.title, "-m sglang.launch_server --model-path") || main.env("SGLAUNCH_REHEARSAL_STATE") == "" {
		t.Errorf("main must keep its title and environment: %q", main.title)
	}
}

func checkOrder(t *testing.T, p *server, ranks int) {
	t.Helper()
	out, _ := p.output()
	for r := range ranks {
		at := 0
		for _, m := range milestones {
			found := regexp.MustCompile(fmt.Sprintf(`\[[-0-9]+ [:0-9]+ TP%d\] %s`, r, regexp.QuoteMeta(m))).FindStringIndex(out[at:])
			if found == nil {
				t.Fatalf("TP%d: no %q after the milestone before it", r, m)
			}
			at += found[1]
		}
	}
	for _, once := range []string{"max_total_num_tokens=", "Uvicorn running on", "ready to roll!", "Registering "} {
		if n := strings.Count(out, once); n != 1 {
			t.Errorf("%q printed %d times, want once", once, n)
		}
	}
}

func TestServerArgsAreOneLongLine(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	p := play(t, s, append(launchArgs(s, 1), "--api-key", "secret"))
	p.sees("Using default HuggingFace chat template")
	out, _ := p.output()
	line := regexp.MustCompile(`(?m)^\[[^]]+\] server_args=ServerArgs\(model_path='.*\)$`).FindString(out)
	if len(line) < 10_000 {
		t.Errorf("the line has %d bytes, want 10 KB or more: %q", len(line), line)
	}
	for _, part := range []string{"tp_size=1", "api_key='secret'", "moe_runner_backend='flashinfer_cutlass'", "watchdog_timeout=300", "crash_dump_folder=None"} {
		if !strings.Contains(line, part) {
			t.Errorf("no %q in the line", part)
		}
	}
}

func TestOneRankPrintsNoPrefix(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	p := play(t, s, launchArgs(s, 1))
	p.sees("ready to roll!")
	if out, _ := p.output(); strings.Contains(out, " TP0]") || strings.Contains(out, "[Gloo]") {
		t.Errorf("a single GPU has no rank prefix; output:\n%s", out)
	}
	if n := len(p.titled("sglang::scheduler")); n != 1 {
		t.Errorf("%d schedulers, want 1", n)
	}
}

func TestDataParallel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		args   []string
		titles []string
		line   string
	}{
		{"groups", []string{"--dp", "2", "--tp", "2"},
			[]string{"_DP0_TP0", "_DP0_TP1", "_DP1_TP0", "_DP1_TP1"}, "Launch DP1 starting at GPU #2."},
		{"attention", []string{"--dp", "2", "--tp", "4", "--ep", "4", "--enable-dp-attention"},
			[]string{"_DP0_TP0_EP0", "_DP0_TP1_EP1", "_DP1_TP2_EP2", "_DP1_TP3_EP3"}, "DP1 TP2 EP2] Load weight begin."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := stageFor(t, "", 60)
			p := play(t, s, append([]string{"--model-path", s.Model}, c.args...))
			p.sees("ready to roll!")
			p.sees(c.line)
			controllers := p.titled("sglang::data_parallel_controller")
			if len(controllers) != 1 {
				t.Fatalf("%d controllers, want 1", len(controllers))
			}
			var titles []string
			for _, q := range p.titled("sglang::scheduler") {
				titles = append(titles, strings.TrimPrefix(q.title, "sglang::scheduler"))
				if q.parent != controllers[0].pid {
					t.Errorf("%s is no child of the controller", q.title)
				}
			}
			slices.Sort(titles)
			if !slices.Equal(titles, c.titles) {
				t.Errorf("titles %v, want %v", titles, c.titles)
			}
			if code := p.get("/health"); code != 200 {
				t.Errorf("/health answered %d", code)
			}
		})
	}
}

// A scheduler's parent is the controller, which dies of the signal it does not handle.
func TestFailureBelowTheController(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 60)
	oom, err := Find("oom-weights")
	if err != nil {
		t.Fatal(err)
	}
	p := play(t, s, []string{"--model-path", s.Model, "--dp", "2", "--tp", "2"}, oom)
	if how := p.ends(); how != "exit status 1" {
		t.Errorf("ended by %q", how)
	}
	p.sees("Scheduler hit an exception")
	p.sees("Rank 0 scheduler is dead.")
	p.sees("Exit code: -3")
}

func TestStopWhileLoading(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 20)
	p := play(t, s, launchArgs(s, 2))
	// A child that has not begun its life yet does not die with its parent.
	p.sees("TP0] Load weight begin.")
	p.sees("TP1] Load weight begin.")
	until(t, "the detokenizer lives", func() bool { return len(p.titled("sglang::detokenizer")) == 1 })
	p.signal(syscall.SIGTERM)
	if how := p.ends(); how != "signal: terminated" {
		t.Errorf("main has no handler while loading, yet ended by %q", how)
	}
	until(t, "the kernel has ended the children", func() bool { return !groupAlive(p.group) })
}
