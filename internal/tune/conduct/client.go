package conduct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/plain"
	"sglaunch/internal/proc"
	"sglaunch/internal/statedir"
	"sglaunch/internal/visible"
)

// Client is one run of a bench client. It gets a process group of its own and
// is bounded in time, in what it may write, and by what it completes: one
// stalled stream has held such clients for hours.
type Client struct {
	What   string // it is, in what is told of it; "" = the bench client
	Argv   []string
	Env    []string // complete
	Dir    string
	Log    string        // file for both of its outputs; it must not exist
	Marker string        // NAME=value, of this run alone; it finds what the client leaves behind
	Limit  time.Duration // of the whole run
	Quiet  time.Duration // without anything completed
	On     []int         // CPUs that it may use; nil: those that we may
}

// ClientEnd is how a run went.
type ClientEnd struct {
	Began   time.Time
	Took    time.Duration
	Problem string  // "" = it ended by itself, with status 0
	Status  int     // of its exit, where it ended by itself; else below 0
	CPUs    float64 // that its busiest process used while requests were under way
	Lag     float64 // share of that time in which one of its processes would have gone on and could not
}

const (
	clientGrace = 2 * time.Second // between SIGTERM and SIGKILL
	clientKill  = 10 * time.Second
	clientTick  = 500 * time.Millisecond
	clientLog   = 64 << 20 // bytes that a client may print
)

// Run starts the client and returns when it and all that it started have
// ended. A context that ends ends the client at once; its cause is the problem.
func (c Client) Run(ctx context.Context) (end ClientEnd) {
	end.Began, end.Status = time.Now(), -1
	defer func() { end.Took = time.Since(end.Began) }()
	cmd, err := c.start()
	if err != nil {
		end.Problem = err.Error()
		return end
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	m := newMeter(cmd.Process.Pid, c.Log)
	var own bool
	if end.Problem, own = c.watch(ctx, m, done); own {
		end.Status = cmd.ProcessState.ExitCode()
	}
	if end.Lag = m.lag(); end.Problem == "" {
		end.CPUs = m.cpus(cmd.ProcessState, time.Since(end.Began))
	} else {
		end.CPUs = m.busiest()
	}
	c.sweep(m)
	return end
}

func (c Client) what() string { return cmp.Or(c.What, "the bench client") }

func (c Client) start() (*exec.Cmd, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_EXCL|os.O_WRONLY, statedir.FileMode)
	if err != nil {
		return nil, fmt.Errorf("cannot keep %s's output: %w", c.what(), err)
	}
	defer log.Close()
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env = c.Dir, append(c.Env[:len(c.Env):len(c.Env)], c.Marker)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := startOn(c.On, cmd.Start); err != nil {
		return nil, fmt.Errorf("cannot start %s %q: %w", c.what(), c.Argv[0], plain.Error(err))
	}
	return cmd, nil
}

// watch waits for the end of the client, and makes one where it takes too long;
// own tells that it ended by itself.
func (c Client) watch(ctx context.Context, m *meter, done chan error) (problem string, own bool) {
	limit := time.NewTimer(c.Limit)
	defer limit.Stop()
	tick := time.NewTicker(clientTick)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return c.howEnded(err), true
		case <-ctx.Done():
			problem = c.what() + " was ended: " + context.Cause(ctx).Error()
		case <-limit.C:
			problem = fmt.Sprintf("%s took longer than %s", c.what(), c.Limit)
		case now := <-tick.C:
			m.read(now)
			problem = c.stuck(m, now)
		}
		if problem != "" {
			c.end(m.pid, done)
			return problem, false
		}
	}
}

func (c Client) stuck(m *meter, now time.Time) string {
	switch {
	case m.size > clientLog:
		return fmt.Sprintf("%s printed more than %d MiB", c.what(), clientLog>>20)
	case now.Sub(m.moved) < c.Quiet:
		return ""
	case m.total > 0:
		return fmt.Sprintf("%s stalled: nothing completed for %s at %d of %d requests", c.what(), c.Quiet, m.done, m.total)
	}
	return fmt.Sprintf("%s stalled: no sign of life for %s", c.what(), c.Quiet)
}

// howEnded says how the client ended, with its last words where it failed: one
// whose requests all fail often ends by an exception.
func (c Client) howEnded(err error) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &exit):
		printed, _ := tailOf(c.Log, 2<<10)
		return either(c.what()+" ended with "+exit.Error(), visible.Clip(lastLine(string(printed)), textMost))
	}
	return c.what() + " cannot be waited for: " + err.Error()
}

// end asks the client's group to end, then makes it.
func (c Client) end(pid int, done chan error) {
	_ = unix.Kill(-pid, unix.SIGTERM)
	grace := time.NewTimer(clientGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		_ = unix.Kill(-pid, unix.SIGKILL) // nobody has waited for the leader: the group is still its own
		<-done
	}
}

// sweep ends what the client has left behind, wherever it went.
func (c Client) sweep(m *meter) {
	ctx, cancel := context.WithTimeout(context.Background(), clientKill)
	defer cancel()
	proc.KillAll(ctx, proc.Membership{Recorded: m.others(), Marker: c.Marker})
}
