package conduct

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/gpu"
	"sglaunch/internal/preflight"
	"sglaunch/internal/proc"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
)

const (
	gatePoll  = 250 * time.Millisecond
	gateSlack = 256 << 20 // bytes by which two looks at an idle GPU may differ
	diskLeast = 1 << 30   // bytes that a launch may need for logs and compiled kernels
)

// settle is the gate before a launch: nothing of ours lives, memory and ports
// are free, nobody else works on the GPUs, they are cool enough. What may pass
// is waited for; what is broken is told at once. Nobody is ended here: a
// foreign process is news, not prey.
func (s *site) settle(ctx context.Context, a tune.Settle) tune.Settled {
	began := time.Now()
	answer := tune.Settled{After: a.After}
	for {
		now, seen := s.eyes.look(ctx)
		if seen {
			s.rememberIdle(now)
		}
		answer.Hardware = s.broken(now)
		answer.Problem = s.unsettled(now)
		answer.Hot = s.hot(now)
		answer.Waited = time.Since(began)
		answer.OK = answer.Hardware == "" && answer.Problem == "" && answer.Hot == ""
		late := !time.Now().Before(a.Until)
		switch {
		case answer.Hardware != "", answer.OK, ctx.Err() != nil:
			return answer
		case late:
			answer.OK = answer.Problem == "" // too warm is told, and no obstacle
			return answer
		}
		wait(ctx, min(gatePoll, max(time.Until(a.Until), time.Millisecond)))
	}
}

// unsettled names the first thing that is not as it must be.
func (s *site) unsettled(now []gpu.GPU) string {
	if left := s.leftovers(); len(left) > 0 {
		return fmt.Sprintf("process %d (%s) of an earlier launch still lives", left[0].PID, left[0].Comm)
	}
	if busy := preflight.BusyPorts(s.baseCommand()); len(busy) > 0 {
		return busy[0]
	}
	if who := s.foreign(now, nil); len(who) > 0 {
		return who[0]
	}
	for _, g := range now {
		if more := heldMore(s.idle, g); more > gateSlack {
			return fmt.Sprintf("GPU %d holds %.1f GiB more than before the night, and no process explains it", g.Index, float64(more)/(1<<30))
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(s.dir, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) < diskLeast {
		return fmt.Sprintf("the disk of %q has less than 1 GiB free", s.dir)
	}
	return ""
}

// leftovers are living processes of the night. While a trial runs that is all
// of it; between trials there must be none.
func (s *site) leftovers() []proc.Proc {
	all, _ := proc.WithMarker(s.marker())
	return slices.DeleteFunc(all, func(p proc.Proc) bool { return p.Dead() || p.PID == os.Getpid() })
}

// foreign names the processes on our GPUs that are not of the night. A pid that
// does not exist here is one of another namespace: nothing is known of it.
func (s *site) foreign(now []gpu.GPU, launch *Launch) (all []string) {
	ours := map[int]bool{}
	below := s.leftovers()
	if launch != nil {
		more, _ := proc.Descendants(launch.shim.PID) // a server may have wiped its environment
		below = append(below, more...)
	}
	for _, p := range below {
		ours[p.PID] = true
	}
	for _, g := range now {
		for _, p := range g.Processes {
			known, err := proc.Identify(p.PID)
			if err != nil || ours[p.PID] {
				continue
			}
			all = append(all, fmt.Sprintf("process %d (%s) works on GPU %d and is not ours", p.PID, known.Comm, g.Index))
		}
	}
	return all
}

// heldMore is by how much more memory is used than when the GPU was idle, less
// what its processes hold.
func heldMore(idle []gpu.GPU, now gpu.GPU) int64 {
	i := slices.IndexFunc(idle, func(g gpu.GPU) bool { return g.UUID == now.UUID })
	if i < 0 || !now.MemoryKnown() {
		return 0
	}
	more := int64(now.Used) - int64(idle[i].Used)
	for _, p := range now.Processes {
		more -= p.Bytes.Value
	}
	for _, p := range idle[i].Processes {
		more += p.Bytes.Value
	}
	return more
}

// broken names what hardware has failed since the night began.
func (s *site) broken(now []gpu.GPU) string {
	if x := s.eyes.xid(s.began); x != "" {
		return x
	}
	return worn(s.idle, now)
}

// hot names the hottest GPU above the study's gate.
func (s *site) hot(now []gpu.GPU) (text string) {
	most := int64(s.study.Gate.Temperature)
	for _, g := range now {
		if s.study.Gate.Temperature > 0 && g.TempC.Above(most) {
			most, text = g.TempC.Value, fmt.Sprintf("GPU %d has %d °C", g.Index, g.TempC.Value)
		}
	}
	return text
}

// idleName is the file that keeps what the GPUs held before the night: a tuner
// that was killed must not take its own leftovers for the level to return to.
const idleName = "idle.json"

func (s *site) rememberIdle(now []gpu.GPU) {
	if s.idle != nil {
		return
	}
	path := filepath.Join(s.dir, idleName)
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &s.idle) == nil && s.idle != nil {
		return
	}
	s.idle = now
	if text, err := json.Marshal(now); err == nil {
		if err := statedir.Replace(path, text); err != nil {
			s.tell("the GPUs' idle level is not kept: " + err.Error())
		}
	}
}
