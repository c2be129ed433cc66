package conduct

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"sglaunch/internal/mask"
	"sglaunch/internal/notify"
	"sglaunch/internal/serve"
	"sglaunch/supervisor"
)

// contractLimit bounds each command of a take-over.
const contractLimit = 30 * time.Minute

// errKept says that the running server was left as it was.
var errKept = errors.New("the server that runs is left as it is")

// takeOver ends the production server by the study's contract, and only by it:
// drained, put back and drained again, so that both ways are known to work
// before anything is ended; then stopped in order. The launch has to be the
// base's own, for that is what serves in the morning.
func (s *site) takeOver(ctx context.Context) error {
	t := s.study.Takeover
	if t.Launch == "" {
		return nil
	}
	if t.Launch != s.base.Server.Name {
		return fmt.Errorf("cannot take over %q: the base serves as %q in the morning, so nothing would bring it back; name the launch that the base describes", t.Launch, s.base.Server.Name)
	}
	if supervisor.Find(s.state, t.Launch).Shim.PID == 0 {
		return nil // it does not run: there is nothing to take over
	}
	for _, step := range []struct {
		what string
		argv []string
	}{{"drain", t.Drain}, {"return", t.Return}, {"drain", t.Drain}} {
		if len(step.argv) == 0 {
			continue
		}
		s.tell(fmt.Sprintf("takeover of %s: %s", t.Launch, step.what))
		if err := command(ctx, step.argv); err != nil {
			return fmt.Errorf("cannot take over %q: %s: %w; %w", t.Launch, step.what, err, errKept)
		}
	}
	l := findLaunch(t.Launch, s.state, true)
	if l == nil {
		return nil
	}
	s.tell("takeover of " + t.Launch + ": it is being stopped")
	s.taken = true
	if !l.Stop("sglaunch tune: takeover", s.longest()) {
		return fmt.Errorf("cannot take over %q: process %d does not end", t.Launch, l.shim.PID)
	}
	return nil
}

// giveBack puts what serves in the morning where the production server was.
func (s *site) giveBack(ctx context.Context) {
	t := s.study.Takeover
	if t.Launch == "" || len(t.Return) == 0 {
		return
	}
	if err := command(ctx, t.Return); err != nil {
		s.tell(fmt.Sprintf("takeover of %s: what serves now could not be put back into its router: %v", t.Launch, err))
	}
}

// command runs one command of a contract, in a process group of its own.
func command(ctx context.Context, argv []string) error {
	ctx, cancel := context.WithTimeout(ctx, contractLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = notify.WithoutService(cmd.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // whoever holds its output open is not waited for
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%q: %w: %s", argv[0], err, serve.Plain(mask.String(lastLine(string(out)))))
	}
	return nil
}

// unclaimed says whether a launch runs where the night wants to, though no
// contract gives it.
func (s *site) unclaimed() error {
	o := supervisor.Find(s.state, s.base.Server.Name)
	if o.Shim.PID == 0 || s.study.Takeover.Launch == s.base.Server.Name {
		return nil
	}
	return fmt.Errorf("cannot tune: %q is running as process %d, and the study does not say that it may be ended; write [takeover] launch = %q with the command that drains it, or stop it",
		s.base.Server.Name, o.Shim.PID, strings.TrimSpace(s.base.Server.Name))
}
