package preflight

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/sglangcmd"
)

// defaultLimit is long for a look at files, and short against a start.
const defaultLimit = 10 * time.Second

// look is one run of the checks: the input, and what follows from it.
type look struct {
	Input
	cmd     sglangcmd.Command
	server  sglangcmd.Server
	devices []gpu.GPU // that the server will use, where known
	note    string    // on the choice of the devices
	root    string    // of the file system: "/" but in tests

	weights func() weights // of the model, read once
}

// checker is one check.
type checker struct {
	name   string
	sglang bool // only where the command is recognisably SGLang
	run    func(context.Context, *look) []Check
}

// checkers are all checks, in the order in which they are shown.
var checkers = []checker{
	{"command", false, checkCommand},
	{"container", false, checkContainer},
	{"package", true, checkPackage},
	{"model", true, checkModel},
	{"draft_model", true, checkDraft},
	{"adapters", true, checkAdapters},
	{"ports", true, checkPorts},
	{"nodes", true, checkNodes},
	{"gpus", true, checkGPUs},
	{"gpu_memory", true, checkGPUMemory},
	{"driver", true, checkDriver},
	{"host_memory", true, checkHostMemory},
	{"shared_memory", true, checkSharedMemory},
	{"disk", false, checkDisk},
	{"limits", true, checkLimits},
	{"proxy", true, checkProxy},
	{"output", true, checkOutput},
	{"secrets", false, checkSecrets},
}

// Run does all checks side by side and returns their results in a fixed order.
// A check that does not end in time is a warning that says so: slow storage or
// a hanging driver is no proof that the server will not start.
func Run(ctx context.Context, in Input) []Check { return run(ctx, in, "/") }

func run(ctx context.Context, in Input, root string) []Check {
	l := newLook(in, root)
	results := make([][]Check, len(checkers))
	var all sync.WaitGroup
	for i, c := range checkers {
		if c.sglang && !l.cmd.SGLang() || l.inside(c.name) {
			continue
		}
		all.Go(func() { results[i] = c.within(ctx, l) })
	}
	all.Wait()
	var checks []Check
	for _, r := range results {
		checks = append(checks, r...)
	}
	return checks
}

func newLook(in Input, root string) *look {
	if in.Limit <= 0 {
		in.Limit = defaultLimit
	}
	l := &look{Input: in, root: root, cmd: sglangcmd.Parse(in.Argv, in.Env, in.Dir)}
	l.server = l.cmd.Server()
	if in.GPUs != nil {
		l.devices, l.note = l.pick()
	}
	l.weights = sync.OnceValue(func() weights { return readWeights(l.modelDir(l.server.Model)) })
	return l
}

// pick chooses the GPUs of the launch.
func (l *look) pick() ([]gpu.GPU, string) {
	if len(l.Devices) == 0 {
		return gpu.Devices(l.cmd, l.GPUs.GPUs)
	}
	picked, err := gpu.Select(l.Devices, l.GPUs.GPUs)
	if err != nil {
		return nil, err.Error()
	}
	return picked, ""
}

// within runs a check under the limit. One that does not end is left behind:
// what it waits for cannot be interrupted.
func (c checker) within(ctx context.Context, l *look) []Check {
	ctx, cancel := context.WithTimeout(ctx, l.Limit)
	defer cancel()
	began := time.Now()
	done := make(chan []Check, 1)
	go func() { done <- c.run(ctx, l) }()
	var checks []Check
	select {
	case checks = <-done:
	case <-ctx.Done():
		checks = []Check{warn("look for slow or hanging storage, or a hanging driver",
			"no answer within %v, so nothing is known", l.Limit)}
	}
	for i := range checks {
		checks[i].Name = c.name
		checks[i].Took = time.Since(began)
	}
	return checks
}

// path is a path of the machine; in tests below another root.
func (l *look) path(elements ...string) string {
	return filepath.Join(append([]string{l.root}, elements...)...)
}

// abs makes a path of the command count from where it starts.
func (l *look) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(l.cmd.Dir, path)
}

// getenv is a variable of the server, "" where it is not set.
func (l *look) getenv(name string) string {
	v, _ := l.cmd.Getenv(name)
	return v
}
