package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"sglaunch/internal/mask"
	"sglaunch/internal/proc"
	"sglaunch/internal/stacks"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor/machine"
)

// memoryTries is how often the memory groups are read for the last time.
const memoryTries = 5

// gather writes down what can be known about a failing attempt before its
// processes are ended: the last lines of each rank, the process table, the
// GPUs. Each part may fail without the others.
func (h *hands) gather(ctx context.Context, attempt int, a machine.GatherEvidence) machine.Body {
	folder := h.attemptFolder(attempt).Evidence()
	if err := os.MkdirAll(folder, statedir.DirMode); err != nil {
		return machine.Evidence{Diagnosis: h.reader.Diagnosis()}
	}
	var aside sync.WaitGroup // what takes seconds, beside what does not
	var found stacks.Finding
	var stood string
	aside.Go(func() { stood, found = h.stacks(ctx, a.Twice) })
	var locks, stale string
	aside.Go(func() { locks, stale = h.locks(ctx) })
	put := func(name, text string) error {
		return os.WriteFile(filepath.Join(folder, name), []byte(mask.String(text)), statedir.FileMode)
	}
	gpus, neighbours := h.gpuTable(ctx)
	kernel, killed := h.kernelNews(ctx)
	memory, errMemory := h.watch.hostMemory()
	for tries := 1; errMemory != nil && tries < memoryTries && pause(ctx, 100*time.Millisecond); tries++ {
		memory, errMemory = h.watch.hostMemory() // on a machine that is short of memory all is slow
	}
	err := errors.Join(
		put("reason.txt", a.Reason+"\n"),
		put("last-lines.txt", h.lastLines()),
		put("processes.txt", h.processTable(ctx)),
		put("gpus.json", gpus),
		put("kernel.txt", kernel),
		put("memory.txt", memoryTable(memory, errMemory)),
		put("explain.json", h.explanation()),
	)
	aside.Wait()
	err = errors.Join(err, put("stacks.txt", stood), put("locks.txt", locks))
	if err != nil {
		h.note("evidence", fmt.Sprintf("evidence is incomplete: %v", err))
	}
	return machine.Evidence{Dir: folder, Diagnosis: h.reader.Diagnosis(), Neighbours: neighbours,
		Stacks: found.Text, Suspects: found.Suspects, Hung: found.Hung, Lock: lockText(found), Stale: stale, Killed: killed, Memory: memory}
}

// memoryTable is what the memory groups of the server count, the innermost first.
func memoryTable(groups []machine.MemoryGroup, unknown error) string {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "%s: used %d of %d (0 = no limit), file pages %d; processes ended %d, limit reached %d, slowed down %d\n",
			g.Name, g.Used, g.Limit, g.Cache, g.Killed, g.Reached, g.Slowed)
	}
	if unknown != nil {
		fmt.Fprintln(&b, unknown)
	}
	if b.Len() == 0 {
		return "no memory group shows here\n"
	}
	return b.String()
}

func (h *hands) lastLines() string {
	var b strings.Builder
	lines := h.reader.LastLines()
	ranks := make([]string, 0, len(lines))
	for rank := range lines {
		ranks = append(ranks, rank)
	}
	sort.Strings(ranks)
	for _, rank := range ranks {
		fmt.Fprintf(&b, "== %s\n%s\n", rank, strings.Join(lines[rank], "\n"))
	}
	return b.String()
}

func (h *hands) processTable(ctx context.Context) string {
	var b strings.Builder
	for _, e := range proc.Pictures(ctx, h.watch.ids()) {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// gpuTable is what the driver says now, and who else is on the launch's GPUs.
func (h *hands) gpuTable(ctx context.Context) (table string, others []machine.Neighbour) {
	sample, err := h.gpus.Snapshot(ctx)
	if err != nil {
		return fmt.Sprintf("{\"error\": %q}\n", err.Error()), nil
	}
	data, err := json.MarshalIndent(sample, "", "  ")
	if err != nil {
		return err.Error(), nil
	}
	h.watch.worsened(sample)
	return string(data) + "\n", h.neighbours(sample)
}

func (h *hands) explanation() string {
	report, ok := h.reader.Report()
	if !ok {
		return "null\n"
	}
	return string(explainJSON(report)) + "\n"
}
