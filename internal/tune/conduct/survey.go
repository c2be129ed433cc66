package conduct

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/mask"
	"sglaunch/internal/preflight"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/tune"
)

// RefusedError says that a plan cannot answer its question.
type RefusedError struct{ Plan tune.Plan }

func (e *RefusedError) Error() string {
	return "cannot tune: " + strings.Join(e.Plan.Problems, "; ")
}

// Plan looks at the machine and plans the night of a study. It starts nothing
// but the installed server's --help. What stands in the way now, a taken port or
// somebody else's work on the GPUs, is a warning: the night may begin later.
func Plan(ctx context.Context, o Options) (tune.Plan, error) {
	s, err := newSite(o)
	if err != nil {
		o.Source.Close()
		return tune.Plan{}, err
	}
	defer s.eyes.close()
	p, err := s.survey(ctx)
	if err != nil {
		return p, err
	}
	if err := s.unclaimed(); err != nil {
		p.Warnings = append(p.Warnings, strings.TrimPrefix(err.Error(), "cannot tune: "))
	}
	p.Warnings = append(p.Warnings, preflight.BusyPorts(s.baseCommand())...)
	if now, ok := s.eyes.look(ctx); ok {
		p.Warnings = append(p.Warnings, s.foreign(now, nil)...)
	}
	return p, nil
}

// survey is the plan that the machine allows.
func (s *site) survey(ctx context.Context) (tune.Plan, error) {
	zone := time.Local
	if s.study.Timezone != "" {
		var err error
		if zone, err = time.LoadLocation(s.study.Timezone); err != nil {
			return tune.Plan{}, fmt.Errorf("cannot use the time zone %q: %w", s.study.Timezone, err)
		}
	}
	o := tune.Outlook{
		Now: time.Now(), Zone: zone, Base: s.study.BaseSettings(s.base), Command: s.base.Server.Command, Env: s.env,
		Facts: s.learn(ctx), Expect: s.expect(ctx), Noise: s.noise(ctx), Flags: s.flags(ctx),
	}
	for _, p := range s.base.Patches {
		o.Patches = append(o.Patches, p.Label())
	}
	p, err := tune.NewPlan(s.study, o)
	if err != nil {
		return p, err
	}
	for _, t := range p.Trials {
		if _, err := served(s.base, s.study, t); err != nil {
			p.Problems = append(p.Problems, strings.TrimPrefix(err.Error(), "cannot tune: "))
		}
	}
	p.Problems = slices.Compact(append(p.Problems, s.placeClients(ctx)...))
	p.Planned.Study = masked(p.Study)
	return p, nil
}

// masked is a study as a journal may keep it: commands may hold tokens.
func masked(study tune.Study) tune.Study {
	study.Loads = slices.Clone(study.Loads)
	for i := range study.Loads {
		study.Loads[i].Command, study.Loads[i].Args = mask.Argv(study.Loads[i].Command), mask.Argv(study.Loads[i].Args)
	}
	study.Quality.Eval = mask.Argv(study.Quality.Eval)
	study.Takeover.Drain, study.Takeover.Return = mask.Argv(study.Takeover.Drain), mask.Argv(study.Takeover.Return)
	return study
}

const historyLimit = 5 * time.Second

// expect is what a start of the base took here, by history; zero where that is
// unknown.
func (s *site) expect(ctx context.Context) (e tune.Estimate) {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	db, err := history.OpenToRead(ctx, s.state.History())
	if err != nil {
		return e
	}
	defer db.Close()
	launches, err := db.Launches(ctx, s.base.Server.Name, 20)
	if err != nil {
		return e
	}
	flags := history.FlagsDigest(s.baseCommand().Args, s.env)
	var took, cold []time.Duration // a start that had to compile says little of one that has not
	for _, l := range launches {
		for _, a := range l.Attempts {
			switch {
			case a.Ready.IsZero() || a.Key.Flags != flags:
			case a.Key.Caches.JIT == history.Cold:
				cold = append(cold, a.Ready.Sub(a.Began))
			default:
				took = append(took, a.Ready.Sub(a.Began))
			}
		}
	}
	if len(took) == 0 {
		took = cold
	}
	if slices.Sort(took); len(took) > 0 {
		e.Start = took[len(took)/2]
	}
	return e
}

const (
	helpLimit = 2 * time.Minute
	helpMost  = 4 << 20
)

var flagForm = regexp.MustCompile(`--[a-z0-9][a-z0-9_-]*`)

// flags are those that the installed server knows, by its own --help; nil where
// it could not be asked. SGLang renames and drops flags between versions.
func (s *site) flags(ctx context.Context) map[string]bool {
	argv := helpCommand(s.base.Server.Command, s.baseCommand())
	if argv == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, helpLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = s.env, s.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out limited
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return nil
	}
	known := map[string]bool{}
	for _, flag := range flagForm.FindAllString(out.String(), -1) {
		known[flag] = true
	}
	if len(known) < 10 { // no help of a server
		return nil
	}
	return known
}

// helpCommand is the command with --help for its arguments; nil where they are
// out of reach.
func helpCommand(argv []string, c sglangcmd.Command) []string {
	at := len(argv) - len(c.Args)
	if !c.SGLang() || at <= 0 || !slices.Equal(argv[at:], c.Args) {
		return nil
	}
	return append(slices.Clone(argv[:at]), "--help")
}

// limited keeps the beginning of what is written.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := helpMost - l.Len(); room > 0 {
		_, _ = l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
