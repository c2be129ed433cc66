package supervisor

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"sglaunch/internal/container"
	"sglaunch/internal/proc"
	"sglaunch/supervisor/machine"
)

// stranger tells whether a process that is none of this launch answers in the
// server's place: another server that took the port after the preflight had found
// it free. Its word is not the server's. A container's port belongs to the engine,
// and a URL that a person named may lead anywhere: there, whoever answers is
// believed; so is a listener that does not show.
func (w *watcher) stranger(attempt int) bool {
	if _, ok := container.Find(w.h.Argv); ok || w.h.URL != "" {
		return false
	}
	options, _ := w.h.probeOptions()
	port := portOf(options.URL)
	pids, _ := proc.Listeners(port)
	ours := w.pids()
	if len(pids) == 0 || slices.ContainsFunc(pids, func(pid int) bool { return slices.Contains(ours, pid) }) {
		return false
	}
	w.mu.Lock()
	told := w.strange
	w.strange = true
	w.mu.Unlock()
	if !told {
		w.h.loop.Post(attempt, machine.SourceLost{Source: "HTTP",
			Reason: fmt.Sprintf("port %d is answered by %s, which is none of this launch", port, proc.Who(pids[0]))})
	}
	return true
}

// portOf is the port that a URL leads to; 0 = it names none.
func portOf(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(u.Port())
	return port
}
