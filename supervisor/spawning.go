package supervisor

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"sglaunch/internal/container"
	"sglaunch/internal/notify"
	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor/machine"
)

// spawn asks the shim for the server of an attempt.
func (h *hands) spawn(attempt int, a machine.Spawn) {
	folder := h.attemptFolder(attempt)
	spec := &wire.Spec{
		Attempt: attempt,
		Argv:    withFlags(h.Argv, a.Flags),
		Dir:     h.Dir,
		Env:     h.environment(a.Environ(h.launch.private())),
		Stdio:   h.Stdio, Stdin: h.Stdin,
		Log:     folder.Log(),
		Records: folder.Processes(),
		Marker:  markerOf(h.launch.Launch, attempt),
		Drain:   wire.Duration(machine.DrainMargin),
	}
	if rotate := h.settings().Rotate; rotate != (wire.Rotate{}) {
		spec.Rotate = &rotate
	}
	if run, ok := container.Find(spec.Argv); ok {
		var file string
		spec.Argv, file = run.WithIDFile(filepath.Join(folder.Path, "container.id"))
		if err := run.Note(folder.Path, file, h.Dir); err != nil {
			h.loop.Post(0, machine.SourceLost{Source: "container", Reason: err.Error()})
		}
	}
	h.launch.memory.spawning(attempt, h.Setup, a)
	h.watch.start(attempt)
	h.order(wire.Message{Type: wire.Spawn, Attempt: attempt, Spec: spec})
}

// markerOf is what the environment of all processes of an attempt holds.
func markerOf(l statedir.Launch, attempt int) string {
	return fmt.Sprintf("SGLAUNCH_ATTEMPT=%s/%d", l.ID, attempt)
}

// kill has the attempt's container ended, where there is one, and then every
// process by the shim, whose answer is the machine's. A container that does not go
// is what is left.
func (h *hands) kill(attempt int, limit time.Duration) {
	order := wire.Message{Type: wire.Kill, Attempt: attempt, Limit: wire.Duration(limit)}
	if _, ok := container.Find(h.Argv); !ok {
		h.order(order)
		return
	}
	h.work.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, limit)
		defer cancel()
		if err := container.End(ctx, h.attemptFolder(attempt).Path); err != nil {
			h.loop.Post(attempt, machine.TreeLeft{Procs: []wire.Proc{{Comm: err.Error(), State: "container"}}})
			return
		}
		h.order(order)
	})
}

// environment is the server's: the one given, less what speaks to sglaunch,
// and what rungs and overlays add. SPT_NOENV keeps setproctitle from wiping
// the environment of the schedulers, and with it our marker (measured with
// setproctitle 1.3.1). A variable stands in it once, as it was set last: of two,
// Python and getenv take the first, and a shell in between the last.
func (h *hands) environment(add []string) []string {
	env := append(notify.WithoutService(h.Env), "SPT_NOENV=1")
	env = append(env, h.watch.overlay()...)
	env = append(env, add...)
	return (&exec.Cmd{Env: env}).Environ()
}

// withFlags changes flags of a command line: the last word wins with argparse,
// so a changed flag is appended.
func withFlags(argv []string, changes []machine.FlagChange) []string {
	out := append([]string(nil), argv...)
	for _, c := range changes {
		out = append(out, c.Flag)
		if c.Value != "" {
			out = append(out, c.Value)
		}
	}
	return out
}

// resumeMembers learns who belongs to the attempt from the shim's records: the
// supervisor before was told, this one was not.
func (h *hands) resumeMembers(hello *wire.Hello) {
	records, err := proc.ReadRecords(h.attemptFolder(hello.Attempt).Processes())
	if err != nil {
		h.loop.Post(0, machine.SourceLost{Source: "process records", Reason: err.Error()})
	}
	for _, r := range records {
		h.member(hello.Attempt, wire.Proc{PID: r.PID, Start: r.Start, PPID: r.PPID, Comm: r.Comm, Cmd: r.Cmd})
	}
}
