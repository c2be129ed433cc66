package conduct

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/tune"
	"sglaunch/internal/tune/bench"
)

// measure runs the bench client once. The end of the server, by whatever sign,
// ends the client at once: it would not notice by itself.
func (at *attempt) measure(ctx context.Context, a tune.Measure) (tune.Measured, *tune.Ended) {
	if a.Point.Soak {
		return at.soak(ctx, a)
	}
	serving, cancel := at.server.Serving(ctx)
	defer cancel()
	load := at.study.LoadOf(a.Point)
	name := at.freeName(pointName(a.Point))
	file, log := name+".json", name+".log"
	client := at.client(ctx, a, name)
	w, machine := at.eyes.watch(name+"-gpus.jsonl"), at.watchMachine(serving)
	printed, told := at.logEnd()
	end := client.Run(serving)
	m := tune.Measured{Launch: at.n, Point: a.Point, Began: end.Began, Took: end.Took, Problem: end.Problem, File: at.relative(file)}
	m.Window = at.eyes.done(w)
	m.Window.Client, m.Window.Lag = end.CPUs, end.Lag
	m.Window.Compiling, m.Window.Pressure = machine()
	if m.Window.Emptied, at.empty = at.empty, false; told {
		m.Window.Opening = at.opening(printed)
	}
	if now, ok := at.eyes.look(ctx); ok {
		m.Window.Foreign = at.foreign(now, at.server)
	}
	if ended := at.cut(ctx, serving); ended != nil {
		return tune.Measured{}, ended
	}
	if m.Problem == "" {
		at.read(&m, load, file, log)
		at.noteMoved(&m)
		m.Window.Joules = w.joules(m.Result.Seconds, m.Began.Add(m.Took))
	}
	return m, nil
}

// client is a run of the bench client at a point; its files begin with name.
func (at *attempt) client(ctx context.Context, a tune.Measure, name string) Client {
	load := at.study.LoadOf(a.Point)
	return Client{
		Argv: argv(load, at.runOf(ctx, load, a.Point, name+".json")), Env: at.clientEnv(), Dir: at.folder, Log: name + ".log",
		Marker: fmt.Sprintf("SGLAUNCH_TUNE_CLIENT=%s/%d", at.dir, time.Now().UnixNano()),
		Limit:  at.limit(load, a.Until), Quiet: at.study.Limits.Quiet, On: at.clients[load.Name].cpus,
	}
}

// cut is the end of the launch where it came in the way of a client: the server
// ended by itself, or the tuner was told to end; nil where neither did.
func (at *attempt) cut(ctx, serving context.Context) *tune.Ended {
	switch {
	case errors.Is(context.Cause(serving), errOver):
		ended := at.ended(false)
		return &ended
	case ctx.Err() != nil:
		ended := at.halt("tune: " + context.Cause(ctx).Error())
		return &ended
	}
	return nil
}

// noteMoved says beside a result that its client ran elsewhere than the study says.
func (at *attempt) noteMoved(m *tune.Measured) {
	if moved := at.clients[m.Point.Load].moved; moved != "" {
		m.Result.Notes = append(m.Result.Notes, moved)
	}
}

// read takes the client's result in; what cannot be believed is a problem.
func (at *attempt) read(m *tune.Measured, load tune.Load, file, log string) {
	text, _ := tailOf(file, bench.MaxBytes+1) // a client may write none: its table is a witness too
	printed, _ := tailOf(log, bench.MaxBytes)
	result, err := bench.Read(load.Bench, text, printed, load.RequestsAt(m.Point.Concurrency))
	if err != nil {
		m.Problem = err.Error()
		return
	}
	m.Result = result
}

// limit of a run: the load's own, and what the night has left.
func (at *attempt) limit(l tune.Load, until time.Time) time.Duration {
	limit := l.Limit
	if limit == 0 {
		limit = at.study.Limits.Load
	}
	if left := time.Until(until); !until.IsZero() && left < limit {
		return max(left, time.Second)
	}
	return limit
}

// freeName is a path that no earlier run of this launch has used: a client
// appends, and a run that failed would leave the line of the one before.
func (at *attempt) freeName(point string) string {
	name := filepath.Join(at.launchFolder(at.n), point)
	for i := 2; ; i++ {
		if _, err := os.Lstat(name + ".log"); err != nil {
			return name
		}
		name = filepath.Join(at.launchFolder(at.n), fmt.Sprintf("%s-again-%d", point, i))
	}
}

func (at *attempt) relative(path string) string {
	if short, err := filepath.Rel(at.dir, path); err == nil {
		return short
	}
	return path
}

// runOf is what the client is to do at a point. The seed is the same for every
// trial, so that all are measured with the same requests.
func (at *attempt) runOf(ctx context.Context, l tune.Load, p tune.Point, file string) bench.Run {
	r := bench.Run{
		Python: "python3", Host: at.at.host(), Port: at.at.port(), Model: at.ownCommand().Server().Model,
		Concurrency: p.Concurrency, Requests: l.RequestsAt(p.Concurrency), Input: l.Input, Output: l.Output,
		Seed: p.Concurrency, Result: file,
	}
	if in, err := at.interpreter(ctx); err == nil {
		r.Python = in.Python
	}
	return r
}

// argv is the load's own command, or the usual one of its client.
func argv(l tune.Load, r bench.Run) []string {
	if len(l.Command) > 0 {
		return r.Fill(append(l.Command[:len(l.Command):len(l.Command)], l.Args...))
	}
	return r.Command(l.Bench, r.Fill(l.Args))
}

// pointName is a point as a part of a file's name.
func pointName(p tune.Point) string {
	if p.Probe || p.Soak {
		return p.String()
	}
	return fmt.Sprintf("%s-%d", p.Load, p.Concurrency)
}

// clientEnv is a client's environment. The key goes there and not onto its
// command line, which everybody can read.
func (at *attempt) clientEnv() []string {
	env := at.environment()
	key := slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "OPENAI_API_KEY=") })
	if at.at.key != "" && !key {
		env = append(env, "OPENAI_API_KEY="+at.at.key)
	}
	return env
}

const machineTick = time.Second

// watchMachine looks, until the answer is asked for, whether kernels are compiled
// below the server, which is not what the night measures, and how much of the
// time tasks wait for CPU, memory or disk.
func (at *attempt) watchMachine(ctx context.Context) (seen func() (compiling bool, pressure float64)) {
	ctx, cancel := context.WithCancel(ctx)
	var compiling bool
	var waiting mean
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		sampler := proc.NewSampler()
		for ctx.Err() == nil {
			members, _ := proc.Descendants(at.server.shim.PID)
			var ids []proc.ID
			for _, p := range members {
				ids = append(ids, p.ID)
			}
			compiling = compiling || len(sampler.Sample(ctx, ids).Compilers) > 0
			if p, err := proc.ReadPressure(proc.MachinePressure); err == nil {
				waiting.add(max(p.CPU, p.Memory, p.IO) / 100)
			}
			wait(ctx, machineTick)
		}
	}()
	return func() (bool, float64) {
		cancel()
		<-ended
		return compiling, waiting.value()
	}
}
