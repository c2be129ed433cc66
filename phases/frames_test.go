package phases

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const tracebackLog = `[2026-01-05 03:00:00] server_args=ServerArgs(model_path='/m', tp_size=2)
[2026-01-05 03:00:09 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 10, in run_scheduler_process
    scheduler = Scheduler(a)
  File "/venv/lib/python3.12/site-packages/sglang/srt/model_executor/model_runner.py", line 90, in kernel_warmup
    self._flashinfer_autotune()
RuntimeError: something new

[2026-01-05 03:00:09] Received sigquit from a child process. It usually means the child failed.
`

func TestFramesOfTheRoot(t *testing.T) {
	tracker := NewTracker(BuiltinRules())
	tracker.Feed([]byte(tracebackLog))
	tracker.Finish()
	want := []string{
		"/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py",
		"/venv/lib/python3.12/site-packages/sglang/srt/model_executor/model_runner.py",
	}
	if got := tracker.Frames(); !slices.Equal(got, want) {
		t.Errorf("frames %q, want %q", got, want)
	}
}

func TestFramesAreBounded(t *testing.T) {
	var log strings.Builder
	log.WriteString("[2026-01-05 03:00:09 TP1] Scheduler hit an exception: Traceback (most recent call last):\n")
	for i := range 10_000 {
		fmt.Fprintf(&log, "  File \"/x/%d.py\", line 1, in f\n    f()\n", i)
	}
	log.WriteString("RuntimeError: deep\n")
	tracker := NewTracker(BuiltinRules())
	tracker.Feed([]byte(log.String()))
	tracker.Finish()
	if n := len(tracker.Frames()); n != maxFrameFiles {
		t.Errorf("%d files kept, want %d", n, maxFrameFiles)
	}
}
