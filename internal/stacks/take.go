package stacks

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"sglaunch/internal/proc"
)

// Process is one to look at.
type Process struct {
	proc.ID
	Rank string // for people: "TP3", "main"
}

// Tools are the programs that may be used; "" = not this one.
type Tools struct {
	PySpy, GDB string
	Limit      time.Duration // of one look of one tool
}

// Take looks at all processes side by side until ctx ends. The answer has one
// Stack for each that lives, in the order given, whatever was learnt of it.
func Take(ctx context.Context, t Tools, processes []Process) []Stack {
	all := make([]*Stack, len(processes))
	var looks sync.WaitGroup
	for i, p := range processes {
		looks.Go(func() { all[i] = t.take(ctx, p) })
	}
	looks.Wait()
	var found []Stack
	for _, s := range all {
		if s != nil {
			found = append(found, *s)
		}
	}
	return found
}

// take looks at one process with the best tool that gets on; nil where the
// process has gone.
func (t Tools) take(ctx context.Context, p Process) *Stack {
	pictures := proc.Pictures(ctx, []proc.ID{p.ID}) // first: a debugger changes where it waits
	if len(pictures) == 0 {
		return nil
	}
	s := &Stack{Process: p}
	for _, way := range []struct {
		name string
		on   bool
		look func(context.Context) ([]Thread, error)
	}{
		{"py-spy", t.PySpy != "", func(ctx context.Context) ([]Thread, error) { return pySpy(ctx, t.PySpy, p.PID) }},
		{"gdb", t.GDB != "", func(ctx context.Context) ([]Thread, error) { return gdb(ctx, t.GDB, p.PID) }},
		{"kernel", true, func(context.Context) ([]Thread, error) { return kernel(pictures[0]) }},
	} {
		if !way.on {
			continue
		}
		threads, err := t.within(ctx, way.look)
		if err == nil {
			s.Tool, s.Threads = way.name, threads
			return s
		}
		s.Errs = append(s.Errs, err.Error())
	}
	return s
}

func (t Tools) within(ctx context.Context, look func(context.Context) ([]Thread, error)) ([]Thread, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	return look(ctx)
}

func pySpy(ctx context.Context, tool string, pid int) ([]Thread, error) {
	text, err := run(ctx, pySpyArgs(tool, pid))
	if err != nil {
		return nil, permission(err)
	}
	return parsePySpy(text, pid)
}

func gdb(ctx context.Context, tool string, pid int) ([]Thread, error) {
	text, err := run(ctx, gdbArgs(tool, pid))
	if err != nil {
		return nil, permission(err)
	}
	return parseGDB(text)
}

// permission says what to do where looking into another process is forbidden:
// the ranks are no children of ours, and Yama then wants root.
func permission(err error) error {
	text := strings.ToLower(err.Error())
	if !strings.Contains(text, "permi") && !strings.Contains(text, "not allowed") && !strings.Contains(text, "ptrace") {
		return err
	}
	if scope, e := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); e == nil && strings.TrimSpace(string(scope)) != "0" {
		return errors.New(err.Error() + " (kernel.yama.ptrace_scope is " + strings.TrimSpace(string(scope)) + ": as root, or with 0, stacks can be seen)")
	}
	return err
}
