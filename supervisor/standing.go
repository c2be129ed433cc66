package supervisor

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/stacks"
)

// Times of the looks at stacks, which all lie within the evidence's own limit.
const (
	toolLimit  = 3 * time.Second // for one tool to look at one process
	secondLook = 4 * time.Second // from the first look to the second
	lookMargin = time.Second     // before the evidence's end, for what was seen to be written
)

// stacks finds out where the processes of the server stand, and what that comes
// to. The text is for the evidence.
func (h *hands) stacks(ctx context.Context, twice bool) (text string, found stacks.Finding) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-lookMargin))
		defer cancel()
	}
	tools := h.stackTools()
	processes := h.watch.standing()
	began := time.Now()
	first := stacks.Take(ctx, tools, processes)
	var second []stacks.Stack
	if seen := func(s stacks.Stack) bool { return s.Tool == "py-spy" }; twice && slices.ContainsFunc(first, seen) {
		if pause(ctx, secondLook-time.Since(began)) {
			second = stacks.Take(ctx, stacks.Tools{PySpy: tools.PySpy, Limit: tools.Limit}, processes)
		}
	}
	ranks := ranksOnly(first)
	return twoLooks(first, second), stacks.Compare(ranks, ranksOnly(second), secondLook)
}

func (h *hands) stackTools() stacks.Tools {
	var folders []string
	command := h.parsed()
	if filepath.IsAbs(command.Python) { // of a virtual environment
		folders = append(folders, filepath.Dir(command.Python))
	}
	if path, ok := command.Getenv("PATH"); ok {
		folders = append(folders, filepath.SplitList(path)...)
	}
	return stacks.Tools{PySpy: stacks.Find("py-spy", folders...), GDB: stacks.Find("gdb", folders...), Limit: toolLimit}
}

// twoLooks is two looks as a file.
func twoLooks(first, second []stacks.Stack) string {
	var b strings.Builder
	for i, look := range [][]stacks.Stack{first, second} {
		if i > 0 && len(look) > 0 {
			b.WriteString("\n" + secondLook.String() + " later\n\n")
		}
		for _, s := range look {
			b.WriteString(s.String())
		}
	}
	return b.String()
}

// others are the processes of a server that are no ranks.
const mainProcess, detokenizer, controller = "main", "detokenizer", "data_parallel_controller"

// ranksOnly leaves out who is no rank, unless nobody is.
func ranksOnly(all []stacks.Stack) []stacks.Stack {
	ranks := slices.DeleteFunc(slices.Clone(all), func(s stacks.Stack) bool {
		return s.Rank == mainProcess || s.Rank == detokenizer || s.Rank == controller
	})
	if len(ranks) > 0 {
		return ranks
	}
	return slices.DeleteFunc(slices.Clone(all), func(s stacks.Stack) bool { return s.Rank != mainProcess })
}

// standing lists the server and its ranks, by pid.
func (w *watcher) standing() []stacks.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []stacks.Process
	for pid, p := range w.members {
		name := strings.TrimPrefix(w.ranks[pid], "scheduler ")
		if p.PID == w.server {
			name = mainProcess
		}
		if name != "" {
			all = append(all, stacks.Process{ID: proc.ID{PID: p.PID, Start: p.Start}, Rank: name})
		}
	}
	slices.SortFunc(all, func(a, b stacks.Process) int { return a.PID - b.PID })
	return all
}

// lockText says what the stacks show of a compile lock.
func lockText(f stacks.Finding) string {
	if f.Lock == "" {
		return ""
	}
	return "a rank waits for a compile lock (" + f.Lock + ")"
}
