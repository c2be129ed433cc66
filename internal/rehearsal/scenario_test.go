package rehearsal

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

const ready = "The server is fired up and ready to roll!"

// outcome is what a scenario must look like from outside.
type outcome struct {
	lines []string                  // that must be printed
	never []string                  // that must not
	how   string                    // main ended: "exit status 1"; "" means it is alive at the end
	args  []string                  // in addition
	tp    int                       // ranks; at least 2
	patch bool                      // with the founding patch in place
	then  func(*testing.T, *server) // what else must be true before main is asked to end
}

func hangs(t *testing.T, p *server) { p.fallsSilent(700 * time.Millisecond) }

var (
	sigquit = []string{"Scheduler hit an exception: Traceback", "Received sigquit from a child process. It usually means the child failed."}
	oom     = append([]string{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"}, sigquit...)
)

var outcomes = map[string]outcome{
	"healthy":      {lines: []string{ready}},
	"bad-argument": {lines: []string{"launch_server.py: error: unrecognized arguments:"}, never: []string{"server_args="}, how: "exit status 2"},
	"import-error": {lines: []string{"ImportError: ", "undefined symbol"}, never: []string{"server_args="}, how: "exit status 1"},
	"slow":         {lines: []string{ready}},
	"needs-input":  {lines: []string{"Do you wish to run the custom code? [y/N]", "EOFError: EOF when reading a line"}, how: "exit status 1"},
	"straggler":    {lines: []string{ready}, then: straggles},
	"nccl-timeout": {lines: []string{"Watchdog caught collective operation timeout: WorkNCCL(", "terminate called after throwing", "Fatal Python error: Aborted"},
		never: []string{"hit an exception"}, then: hangs},
	"warmup-crash": {lines: []string{"triton.runtime.errors.OutOfResources: out of resource: shared memory", "SIGQUIT received. signum=None"},
		never: []string{ready}, how: "signal: killed"},
	"detokenizer-crash": {lines: []string{"DetokenizerManager hit an exception: Traceback", "SIGQUIT received. signum=None"},
		never: []string{ready}, how: "signal: killed"},
	"gpu-lost": {lines: []string{ready, "torch.AcceleratorError: CUDA error: unspecified launch failure"}, how: "signal: killed"},
	"watchdog-timeout": {lines: []string{ready, "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", "SIGQUIT received."},
		how: "signal: killed"},
	"hang-after-ready": {lines: []string{ready}, then: schedulerHangs},
	"hang-in-init":     {lines: []string{"TP0] Init torch distributed begin."}, never: []string{"Init torch distributed ends."}, then: hangs},
	"oom-weights": {lines: append([]string{"in load_model\n", "TP1] Scheduler hit an exception"}, oom...),
		never: []string{"Load weight end."}, how: "signal: killed"},
	"hang-at-shard": {lines: []string{"TP1] Load weight end."}, never: []string{"100% Completed", "TP0] Load weight end."}, then: hangs},
	"rank-sigkill":  {lines: []string{"TP0] Load weight end."}, never: []string{"TP1] Load weight end.", "hit an exception", "died"}, then: deadRankUnnoticed},
	"rank-sigsegv": {lines: []string{"Fatal Python error: Segmentation fault", "Current thread 0x", "TP0] Load weight end."},
		never: []string{"hit an exception"}, then: deadRankUnnoticed},
	"rank-sigkill-noticed": {tp: 4, lines: []string{"RuntimeError: Rank 3 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL)"},
		how: "exit status 1"},
	"oom-kv-cache": {lines: append([]string{"in init_memory_pool"}, oom...), never: []string{"Memory pool end."}, how: "signal: killed"},
	"autotune-crash": {patch: true, how: "signal: killed", never: []string{"Capture cuda graph begin.", "FlashInfer autotune completed."},
		lines: append([]string{"TP1] Running FlashInfer autotune...", "RuntimeError: Ninja build failed. Ninja output:",
			"ninja: build stopped: subcommand failed.", "in _flashinfer_autotune\n", "flashinfer/fused_moe/core.py", "flashinfer/jit/cpp_ext.py",
			"The above exception was the direct cause of the following exception:"}, sigquit...)},
	"oom-autotune":    {patch: true, lines: append([]string{"in _flashinfer_autotune\n"}, oom...), how: "signal: killed"},
	"jit-compile":     {lines: []string{ready}},
	"hang-in-capture": {lines: []string{"Capturing batches (bs=136 "}, never: []string{"bs=128 ", "Capture cuda graph end."}, then: hangs},
	"oom-graph-capture": {lines: append([]string{"Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate", "Possible solutions:"}, sigquit...),
		how: "signal: killed"},
	"leftovers":        {lines: []string{ready}, then: straysOutliveTheServer},
	"port-in-use":      {lines: []string{"ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1',", "Application shutdown complete."}, how: "exit status 1"},
	"warmup-no-answer": {lines: []string{`"GET /model_info HTTP/1.1" 200 OK`}, never: []string{ready}, then: startingForEver},
	"oom-serving": {lines: []string{ready, "torch.OutOfMemoryError: CUDA out of memory", "SIGQUIT received. signum=None, frame=None. It usually means one child failed."},
		how: "signal: killed"},
	"death-after-ready": {lines: []string{ready, "TP1] Scheduler hit an exception", "torch.AcceleratorError: CUDA error: an illegal memory access",
		"SIGQUIT received. signum=None, frame=None."}, how: "signal: killed"},
	"zombie-after-ready": {lines: []string{ready}, never: []string{"SIGQUIT"}, then: answersWithoutScheduler},
	"zombie-noticed":     {lines: []string{ready, "Subprocess scheduler_0 (pid=", "crashed with exit code -9. Triggering SIGQUIT for cleanup..."}, how: "signal: killed"},
	"corrupt-output":     {patch: true, lines: []string{ready}, then: saysOneWord},
	"dull-output":        {lines: []string{ready}, then: saysOneWord},
	"tight-weights":      {args: []string{"--mem-fraction-static", "0.9"}, lines: append([]string{"in load_model\n"}, oom...), how: "signal: killed"},
	"tight-capture": {args: []string{"--mem-fraction-static", "0.9"}, how: "signal: killed",
		lines: append([]string{"Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate"}, sigquit...)},
	"tight-load": {args: []string{"--mem-fraction-static", "0.9"}, lines: []string{ready}, then: failsUnderLoad},
	"foreign-drain": {lines: []string{ready, "SIGTERM received. signum=None frame=None. Draining requests", "Gracefully exiting..."},
		how: "signal: killed"},
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	if len(outcomes) != len(Scenarios()) {
		t.Errorf("%d outcomes for %d scenarios", len(outcomes), len(Scenarios()))
	}
	for _, sc := range Scenarios() {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			o, ok := outcomes[sc.Name]
			if !ok {
				t.Fatal("no outcome")
			}
			rehearse(t, sc, o)
		})
	}
}

func rehearse(t *testing.T, sc Scenario, o outcome) {
	s := stageFor(t, sc.Version, 80)
	args := launchArgs(s, max(2, o.tp))
	if o.patch {
		s = patchedStage(t, s)
	}
	p := play(t, s, append(args, o.args...), sc)
	for _, line := range o.lines {
		p.sees(line)
	}
	if o.then != nil {
		o.then(t, p)
	}
	if o.how != "" {
		if how := p.ends(); how != o.how {
			t.Errorf("main ended by %q, want %q", how, o.how)
		}
		until(t, "the tree is gone", func() bool { return !groupAlive(p.group) })
	}
	out, _ := p.output()
	for _, line := range o.never {
		if strings.Contains(out, line) {
			t.Errorf("%q was printed; output:\n%s", line, out)
		}
	}
}

// deadRankUnnoticed: the last rank is a zombie, and main waits for rank 0 without a word.
func deadRankUnnoticed(t *testing.T, p *server) {
	until(t, "the rank is dead", func() bool { return len(p.titled("sglang::scheduler_TP1")) == 0 })
	hangs(t, p)
}

func startingForEver(t *testing.T, p *server) {
	until(t, "/health answers 503", func() bool { return p.get("/health") == 503 })
	if code := p.get("/model_info"); code != 200 {
		t.Errorf("/model_info answered %d, want 200", code)
	}
}

func answersWithoutScheduler(t *testing.T, p *server) {
	until(t, "the scheduler is dead", func() bool { return len(p.titled("sglang::scheduler_TP0")) == 0 })
	if code := p.get("/health"); code != 503 {
		t.Errorf("/health answered %d, want 503", code)
	}
	p.sees("Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.")
	if code := p.get("/v1/models"); code != 200 {
		t.Errorf("/v1/models answered %d, want 200", code)
	}
}

// schedulerHangs: the process is alive, and health is not.
func schedulerHangs(t *testing.T, p *server) {
	until(t, "/health answers 503 again", func() bool { return p.get("/health") == 503 })
	if n := len(p.titled("sglang::scheduler_TP0")); n != 1 {
		t.Errorf("%d schedulers TP0, want 1", n)
	}
}

// straggles: the last rank is ready with its weights long after the others.
func straggles(t *testing.T, p *server) {
	out, _ := p.output()
	if strings.LastIndex(out, "] Load weight end.") != strings.Index(out, "TP1] Load weight end.")+len("TP1") {
		t.Errorf("TP1 is to be the last; output:\n%s", out)
	}
}

func saysOneWord(t *testing.T, p *server) {
	answer := p.post("/generate", `{"text": "Tell me about rivers", "sampling_params": {"max_new_tokens": 6}}`)
	if want := `"text": " the the the the the the"`; !strings.Contains(answer, want) {
		t.Errorf("no %s in %s", want, answer)
	}
}

// straysOutliveTheServer: two processes in sessions of their own, which SIGTERM does not end.
func straysOutliveTheServer(t *testing.T, p *server) {
	strays := func() (found []process) {
		for _, q := range processes(t) {
			if strings.Contains(q.title, "sglang_rehearsal.stray") && q.env("SGLAUNCH_REHEARSAL_STATE") == p.stateDir() {
				found = append(found, q)
			}
		}
		return found
	}
	until(t, "two strays", func() bool { return len(strays()) == 2 })
	p.signal(syscall.SIGTERM)
	p.ends()
	for _, q := range strays() {
		if q.group == p.group {
			t.Errorf("stray %d is in the server's process group", q.pid)
		}
		_ = syscall.Kill(q.pid, syscall.SIGTERM)
	}
	if n := len(strays()); n != 2 {
		t.Errorf("%d strays after SIGTERM, want 2", n)
	}
}

func TestScenarioForTheFirstStartOnly(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	crash, err := Find("oom-kv-cache")
	if err != nil {
		t.Fatal(err)
	}
	first := play(t, s, launchArgs(s, 2), crash.Once())
	if how := first.ends(); how != "signal: killed" {
		t.Fatalf("the first start ended by %q", how)
	}
	until(t, "the first tree is gone", func() bool { return !groupAlive(first.group) })
	play(t, s, launchArgs(s, 2), crash.Once()).sees(ready)
}

func TestUnknownScenario(t *testing.T) {
	t.Parallel()
	if _, err := Find("no-such"); err == nil || !strings.Contains(err.Error(), "healthy, bad-argument") {
		t.Errorf("the error must list the scenarios, got %v", err)
	}
	s := stageFor(t, "", 100)
	p := play(t, s, launchArgs(s, 1), Scenario{Name: "no-such"})
	p.sees("rehearsal: cannot play 'no-such'")
	p.ends()
}
