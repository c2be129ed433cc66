package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sglaunch/internal/rehearsal"
)

const foundingScenario = "autotune-crash"

func newRehearseCommand() *cobra.Command {
	var r rehearsalRun
	c := &cobra.Command{
		Use:   "rehearse [SCENARIO]",
		Short: "Run the main job on a stand-in SGLang, without a GPU",
		Long:  rehearseLong(),
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r.scenario = foundingScenario
			if len(args) == 1 {
				r.scenario = args[0]
			}
			r.out = c.OutOrStdout()
			if err := r.validate(); err != nil {
				return err
			}
			// The launch is ended and the folder removed whatever ends us.
			ctx, stop := untilAsked(c.Context())
			defer stop()
			return r.run(ctx)
		},
	}
	c.Flags().IntVar(&r.ranks, "tp", 4, "tensor-parallel ranks")
	c.Flags().Float64Var(&r.speed, "speed", rehearsal.DefaultSpeed, "how many times faster than the real thing time runs")
	c.Flags().BoolVar(&r.output, "output", false, "show the server's own output too")
	c.Flags().StringVar(&r.keep, "keep", "", "make everything in this new folder and keep it")
	return c
}

func rehearseLong() string {
	var b strings.Builder
	b.WriteString(`Play a launch on a stand-in: a real Python package that behaves as SGLang does,
run by this machine's python3, with a stand-in NVML library where a C compiler
is at hand. Nothing outside a temporary folder is touched. Without a scenario it
tells the founding story: a patched launch crashes in autotune, everything is
ended, the patch is undone, and the relaunch without it gets ready.

Scenarios:
`)
	table := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, s := range rehearsal.Scenarios() {
		fmt.Fprintf(table, "  %s\t%s\n", s.Name, s.About)
	}
	_ = table.Flush() // a strings.Builder takes everything
	return strings.TrimRight(b.String(), "\n")
}

// rehearsalRun is one call of rehearse.
type rehearsalRun struct {
	scenario string
	ranks    int
	speed    float64
	output   bool
	keep     string
	out      io.Writer

	dir        string
	stage      *rehearsal.Stage
	afterReady bool // the scenario's point comes after ready: it is not stopped then
}

// maxRanks is as many GPUs as the stand-in plays.
const maxRanks = 64

func (r *rehearsalRun) validate() error {
	if r.ranks < 1 || r.ranks > maxRanks {
		return &exitError{exitUsage, fmt.Errorf("cannot rehearse with --tp %d: 1 to %d ranks are possible", r.ranks, maxRanks), ""}
	}
	if !(r.speed > 0) || math.IsInf(r.speed, 0) { // NaN is not above 0 either
		return &exitError{exitUsage, fmt.Errorf("cannot rehearse at --speed %v: it must be above 0", r.speed), "1 is the pace of the real thing"}
	}
	return nil
}

func (r *rehearsalRun) run(ctx context.Context) error {
	scenario, err := rehearsal.Find(r.scenario)
	if err != nil {
		return &exitError{exitUsage, err, "sglaunch rehearse --help tells what each shows"}
	}
	r.afterReady = scenario.AfterReady
	if err := r.makeDir(); err != nil {
		return err
	}
	if r.keep == "" {
		defer os.RemoveAll(r.dir)
	}
	if err := r.build(scenario); err != nil {
		return err
	}
	before, err := digestOf(r.stage.Site)
	if err != nil {
		return err
	}
	code, err := r.launch(ctx, scenario)
	if ctx.Err() != nil {
		return errors.New("cannot finish the rehearsal: a signal ended it")
	}
	if err != nil {
		return err
	}
	return r.verify(before, code)
}

func (r *rehearsalRun) makeDir() (err error) {
	if r.keep != "" {
		r.dir, err = filepath.Abs(r.keep)
		if err == nil {
			err = os.Mkdir(r.dir, 0o700)
		}
	} else {
		r.dir, err = os.MkdirTemp("", "sglaunch-rehearsal-")
	}
	switch {
	case r.keep != "" && errors.Is(err, fs.ErrExist):
		return &exitError{exitUsage, fmt.Errorf("cannot rehearse in %q: it exists already", r.dir), "--keep takes the name of a new folder"}
	case err != nil:
		return fmt.Errorf("cannot make a folder for the rehearsal: %w", err)
	}
	return nil
}

// build makes the stage; without a C compiler the GPUs are left out, and said so.
func (r *rehearsalRun) build(s rehearsal.Scenario) error {
	o := rehearsal.Options{Version: s.Version, Speed: r.speed, GPUs: r.ranks, NVML: true}
	stage, err := rehearsal.Build(filepath.Join(r.dir, "stage"), o)
	if errors.Is(err, rehearsal.ErrNoCompiler) {
		r.say("no C compiler here: the rehearsal goes without GPUs")
		o.NVML = false
		stage, err = rehearsal.Build(filepath.Join(r.dir, "stage-without-gpus"), o)
	}
	r.stage = stage
	return err
}

func (r *rehearsalRun) say(format string, args ...any) {
	fmt.Fprintf(r.out, "rehearsal: "+format+"\n", args...)
}

// launch runs sglaunch itself on the stage, as a person would, and stops it
// once it is ready.
func (r *rehearsalRun) launch(ctx context.Context, s rehearsal.Scenario) (code int, err error) {
	port, err := rehearsal.FreePort()
	if err != nil {
		return 0, err
	}
	toml := filepath.Join(r.dir, "launch.toml")
	if err := os.WriteFile(toml, []byte(r.launchTOML(port)), 0o600); err != nil {
		return 0, fmt.Errorf("cannot write launch.toml: %w", err)
	}
	self, err := thisProgram()
	if err != nil {
		return 0, err
	}
	r.say("scenario %q with %d ranks, time runs %g times as fast", s.Name, r.ranks, r.speed)
	r.say("sglaunch run -c launch.toml -- %s", strings.Join(r.command(port), " "))
	cmd := exec.CommandContext(ctx, self, append([]string{"run", "-c", toml, "--"}, r.command(port)...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), r.stage.Env(s)...)
	cmd.Env = append(cmd.Env, "SGLAUNCH_STATE="+filepath.Join(r.dir, "state"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if r.output {
		cmd.Stdout = r.out
		if file, ok := fileOf(r.out); ok {
			cmd.Stdout = file // a terminal stays one
		}
	}
	lines, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("cannot start sglaunch: %w", err)
	}
	r.follow(lines, cmd.Process)
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// follow shows sglaunch's lines and stops the launch once it is ready.
func (r *rehearsalRun) follow(lines io.Reader, launch *os.Process) {
	begun, stopped := time.Now(), false
	in := bufio.NewScanner(lines)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		fmt.Fprintf(r.out, "%6.1fs  %s\n", time.Since(begun).Seconds(), in.Text())
		if !stopped && announces(in.Text()) && !r.afterReady {
			stopped = true
			r.say("it serves; the story ends with an orderly stop (SIGTERM)")
			_ = launch.Signal(syscall.SIGTERM)
		}
	}
}

// announces reports whether a line tells that the server may be used: it is
// ready, and its answers were looked at where they are.
func announces(line string) bool {
	switch {
	case strings.Contains(line, "sglaunch: ready after"):
		return !strings.Contains(line, "its answers are checked first")
	case strings.Contains(line, "sglaunch: its answers are sound"), strings.Contains(line, "sglaunch: its answers were not checked"):
		return true
	}
	return strings.Contains(line, "no change of sglaunch's is to blame")
}

func (r *rehearsalRun) command(port int) []string {
	return r.stage.Command(r.stage.Args(r.ranks, port)...)
}

// launchTOML is the configuration that a person would write for this, with
// limits that fit the compressed time.
func (r *rehearsalRun) launchTOML(port int) string {
	short := func(d time.Duration) string { return max(d/time.Duration(max(r.speed, 1)), time.Second).String() }
	var limits strings.Builder
	for _, l := range []struct{ phase, quiet string }{
		{"loading_weights", short(2 * time.Minute)}, {"graph_capture", short(2 * time.Minute)},
	} {
		fmt.Fprintf(&limits, "%s = { quiet = %q }, ", l.phase, l.quiet)
	}
	return fmt.Sprintf(`[server]
name = "rehearsal"

[ready]
check = { generations = 12, tokens = 64, batch_sizes = [1, 3, 8], limit = "1m" }

[[patch]]
use = "flashinfer-cutlass-autotune"

[phases]
limits = { %s }

[relaunch]
attempts = 3
backoff = { initial = "1s", max = "2s" }

[stop]
drain = "10s"
grace = "3s"
release = "20s"
`, strings.TrimSuffix(limits.String(), ", "))
}
