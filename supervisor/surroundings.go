package supervisor

import (
	"context"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/preflight"
	"sglaunch/internal/sglangcmd"
	"sglaunch/patch"
)

// surroundings finds out what a start finds already there, as far as that
// decides how long it takes: which SGLang, and how warm its caches are. Nothing
// of it runs the server or reads a weight.
type surroundings struct {
	setup   Setup
	private string // the launch's own compile caches; see Private
}

// lookLimit bounds one look; a disk or an interpreter that hangs leaves what
// it was asked for unknown.
const lookLimit = 4 * time.Second

// parsed is the server's command as far as it can be read.
func (s Setup) parsed() sglangcmd.Command {
	if s.command.SGLang() {
		return s.command
	}
	return s.read()
}

// read reads the server's command as it is now: a start script, or a file of flags,
// may have been edited since.
func (s Setup) read() sglangcmd.Command { return sglangcmd.Parse(s.Argv, s.Env, s.Dir) }

// version is that of the installed SGLang; "" = unknown, or no SGLang.
func (l surroundings) version(ctx context.Context) string {
	if !l.setup.parsed().SGLang() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return <-within(ctx, func() string { return l.installed(ctx) })
}

func (l surroundings) installed(ctx context.Context) string {
	in, err := l.setup.interpreter(ctx)
	if err != nil {
		return ""
	}
	found, err := patch.Locate(ctx, in, "sglang")
	if err != nil {
		return ""
	}
	return found.Version
}

// warmth is what a look at the caches found. Compiled kernels are looked for
// twice: a rung may give the next server compile caches of the launch's own.
type warmth struct {
	pages, jit, private history.Warmth
}

// caches are those of an attempt, in the usual places or in the launch's own.
func (w warmth) caches(private bool) history.Caches {
	if private {
		return history.Caches{Pages: w.pages, JIT: w.private}
	}
	return history.Caches{Pages: w.pages, JIT: w.jit}
}

// warmth looks at all caches side by side. What does not answer in time, or
// cannot be known, stays unknown.
func (l surroundings) warmth(ctx context.Context) warmth {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	command := l.setup.parsed()
	if !command.SGLang() {
		return warmth{}
	}
	getenv := func(name string) string { v, _ := command.Getenv(name); return v }
	pages := within(ctx, func() history.Warmth {
		share, err := history.Resident(ctx, preflight.ModelDir(l.setup.read()))
		if err != nil {
			return history.WarmthUnknown
		}
		return history.WarmthOf(share)
	})
	jit := within(ctx, func() history.Warmth { return kernels(ctx, history.JITCaches(getenv)) })
	private := within(ctx, func() history.Warmth { return kernels(ctx, []string{l.private}) })
	return warmth{pages: <-pages, jit: <-jit, private: <-private}
}

func kernels(ctx context.Context, caches []string) history.Warmth {
	found, err := history.JITWarmth(ctx, caches)
	if err != nil {
		return history.WarmthUnknown
	}
	return found
}
