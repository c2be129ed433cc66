package supervisor

import (
	"cmp"
	"context"
	"strings"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
	"sglaunch/supervisor/machine"
)

// rankPoll is how often the scheduler processes are looked for: a dead one
// leaves a zombie service, which must not last.
const rankPoll = 2 * time.Second

// rollCall looks for ranks that are gone until ctx ends. It waits for no other
// reading: a zombie service must be found within 5 s, whatever hangs.
func (w *watcher) rollCall(ctx context.Context, attempt int, server wire.Proc) {
	for {
		if gone := w.goneRanks(server); gone != nil {
			w.h.loop.Post(attempt, *gone)
		}
		if !pause(ctx, min(rankPoll, max(w.pace(), 100*time.Millisecond))) {
			return
		}
	}
}

// goneRanks finds a scheduler that was alive and is not any more while the
// server lives on. SGLang up to v0.5.9 does not notice that.
func (w *watcher) goneRanks(server wire.Proc) *machine.RankGone {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !proc.Alive(proc.ID{PID: server.PID, Start: server.Start}) {
		return nil
	}
	for pid, p := range w.members {
		title := w.ranks[pid]
		now, err := proc.Identify(pid)
		alive := err == nil && now.Start == p.Start && !now.Dead()
		switch {
		case alive && title == "":
			if name, ok := rankTitle(proc.Command(now)); ok && !forked(now) {
				w.ranks[pid] = name
			}
		case !alive && (title != "" || w.lostChild(p, server)):
			gone := &machine.RankGone{Rank: cmp.Or(title, "a process of the server"), Proc: p}
			if status, ok := proc.ExitStatus(pid); ok {
				gone.Status = &wire.Status{Code: max(status.ExitStatus(), 0)}
				if status.Signaled() {
					gone.Status = &wire.Status{Signal: int(status.Signal()), Core: status.CoreDump()}
				}
			}
			delete(w.ranks, pid)
			delete(w.members, pid)
			return gone
		case !alive:
			delete(w.members, pid)
		}
	}
	return nil
}

// lostChild reports whether a child of the server died of a signal before it
// took its title and lies there uncollected: a server that looks after its
// children collects them. Once the server is ready all that it needs have titles,
// and a helper may be killed and forgotten.
func (w *watcher) lostChild(p, server wire.Proc) bool {
	status, ok := proc.ExitStatus(p.PID)
	return ok && !w.ready && p.PPID == server.PID && status.Signaled()
}

// forked reports whether a process is its parent once more: what a scheduler forks
// bears its title until it runs a program of its own, and its end means nothing.
func forked(p proc.Proc) bool {
	parent, err := proc.Identify(p.PPID)
	return err == nil && proc.Command(parent) == proc.Command(p)
}

// rankTitle reads the titles that SGLang gives the processes that a server
// needs: sglang::scheduler_TP3 (v0.4.6 and later), sglang::detokenizer.
func rankTitle(command string) (string, bool) {
	title, _, _ := strings.Cut(command, " ")
	name, ok := strings.CutPrefix(title, "sglang::")
	if !ok {
		return "", false
	}
	if name == "scheduler" || name == "detokenizer" || name == "data_parallel_controller" {
		return name, true
	}
	if rank, ok := strings.CutPrefix(name, "scheduler_"); ok {
		return strings.ReplaceAll(rank, "_", " "), true
	}
	return "", false
}
