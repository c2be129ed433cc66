package supervisor

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/preflight"
	"sglaunch/internal/proc"
	"sglaunch/internal/serve"
	"sglaunch/internal/sglangcmd"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

// snapshotLimit bounds the question to the driver before a spawn; a driver
// that hangs then refuses nothing.
const snapshotLimit = 10 * time.Second

// preflight looks at what the attempt will need. What is certain to fail is
// refused; all else is told.
func (h *hands) preflight(ctx context.Context, attempt int, beside []machine.Neighbour) machine.Body {
	var looked sync.WaitGroup
	looked.Go(func() { h.launch.memory.measure(ctx, attempt) })
	defer looked.Wait()
	in := h.preflightInput(ctx, h.note)
	checks := append(preflight.Run(ctx, in), h.stillThere(in, beside)...)
	for _, c := range checks {
		if c.Status == preflight.Warn {
			h.note("preflight", "warning: "+c.Found+advice(c))
		}
	}
	p := refusal(checks)
	p.Memory, _ = h.watch.hostMemory() // what does not answer counts from its first answer on
	return p
}

// refusal is what the failed checks come to: their sentences, and the cause for
// which there is the least hope.
func refusal(checks []preflight.Check) (p machine.Preflighted) {
	var texts []string
	worst := machine.CodeStopped
	for _, c := range preflight.Failed(checks) {
		texts = append(texts, c.Found+advice(c))
		if code := refusalCode(c.Cause); code > worst {
			worst, p.Cause = code, c.Cause
		}
	}
	p.Refused = strings.Join(texts, "; ")
	return p
}

func refusalCode(cause string) int {
	c, _ := phases.LookupCause(cause)
	return machine.CodeOf(c, false, true)
}

// RefusalCode is the exit code of a launch that these checks refuse; 0 where
// they refuse nothing. A launch comes to its patches last, so that a refused one
// decides only where nothing else is refused.
func RefusalCode(checks []preflight.Check) int {
	first := slices.DeleteFunc(slices.Clone(checks), func(c preflight.Check) bool { return c.Name == patchCheck })
	switch p := refusal(first); {
	case p.Refused != "":
		return refusalCode(p.Cause)
	case len(preflight.Failed(checks)) > 0:
		return machine.CodePatch
	}
	return machine.CodeStopped
}

// preflightInput collects what the checks look at; note tells of what takes time.
func (h *hands) preflightInput(ctx context.Context, note func(event, text string)) preflight.Input {
	command := h.read()
	h.began.Store(&command)
	in := preflight.Input{Argv: h.Argv, Env: h.Env, Dir: h.Dir, StateDir: h.State.State, Devices: h.Devices, Patched: len(h.Patches) > 0}
	if h.Sampler == nil {
		return in
	}
	sample, err := h.settled(ctx, note)
	if err != nil {
		return in
	}
	picked := h.pick(sample)
	h.mu.Lock()
	h.baseline, h.peak = picked, gpu.NewWatermark(picked)
	h.mu.Unlock()
	in.GPUs, in.Blind = &sample, !proc.HostPIDs()
	return in
}

// ofAttempt is the server's command as the attempt began with it: a start script may
// be edited while the server runs, for the next one, or lie on a disk that hangs.
func (h *hands) ofAttempt() sglangcmd.Command {
	if command := h.began.Load(); command != nil {
		return *command
	}
	return h.parsed()
}

// pick chooses the GPUs of the attempt.
func (h *hands) pick(sample gpu.Sample) []gpu.GPU {
	if len(h.Devices) == 0 {
		picked, _ := gpu.Devices(h.ofAttempt(), sample.GPUs)
		return picked
	}
	var picked []gpu.GPU
	for _, uuid := range h.Devices {
		if g, ok := sample.Find(uuid); ok {
			picked = append(picked, g)
		}
	}
	return picked
}

func advice(c preflight.Check) string {
	if c.Advice == "" {
		return ""
	}
	return " (" + c.Advice + ")"
}

// Check runs the checks of a launch, plans its patches and starts nothing:
// `sglaunch check`. It tells too what a look at the answers will cost, and who may
// read the status.
func Check(ctx context.Context, s Setup, o machine.Options) []preflight.Check {
	h := &hands{Setup: s, ctx: ctx, gpus: gpu.Absent("not looked at")}
	if s.Sampler != nil {
		h.gpus = gpu.Start(gpu.Options{Argv: s.Sampler})
		defer h.gpus.Close()
		go func() {
			for range h.gpus.Events() { // the answer to Snapshot is what counts here
			}
		}()
	}
	checks := preflight.Run(ctx, h.preflightInput(ctx, func(string, string) {}))
	checks = append(append(checks, h.checkPatches(ctx)...), s.costOfAnswers(o.Check))
	if s.HTTP != "" && serve.Exposed(s.HTTP) {
		checks = append(checks, preflight.Check{Name: "http", Status: preflight.Warn,
			Found: "whoever reaches " + s.HTTP + " may read status and metrics", Advice: "a loopback address keeps them on this machine"})
	}
	return checks
}

// costOfAnswers says beforehand what the look at the answers costs, or why
// there will be none.
func (s Setup) costOfAnswers(o machine.OutputCheck) preflight.Check {
	c := preflight.Check{Name: "output check", Status: preflight.OK}
	cannot, wanted := s.cannotCheck(), o.Mode == "always" || o.Mode == "auto" && len(s.Patches) > 0
	switch {
	case o.Mode == "auto" && !wanted:
		c.Found = "none, unless something was changed since the last launch that served, or is by a fallback"
	case !wanted:
		c.Found = "none: it is off"
	case cannot != "":
		c.Status, c.Found = preflight.Warn, "the answers cannot be checked: "+cannot
	default:
		c.Found = "before the launch is announced: " + o.CheckSize.String()
	}
	return c
}
