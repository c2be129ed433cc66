package conduct

import (
	"io"
	"os"
	"regexp"
	"strconv"
	"time"

	"sglaunch/internal/proc"
)

// meter reads what a bench client does: how many requests it has completed by
// its own bar, how much CPU each of its processes uses, and how long each would
// have gone on and could not. A client that is busy all the time, or that is kept
// waiting, measures itself. Not for several goroutines.
type meter struct {
	pid int
	log string

	size        int64
	done, total int64     // by the newest bar in the output; total 0: none was seen
	moved       time.Time // when something was completed last; without a bar, when it did anything

	used  map[proc.ID]usage
	began bool // requests are under way: what was used before is the client's start
}

// usage is what a process did between its first reading and its newest.
type usage struct {
	from, to  time.Time
	first, at uint64                // clock ticks on a CPU
	ready     map[int]time.Duration // of each thread, ready without a CPU, at first
	waited    time.Duration         // since then, of the thread that waited longest
	stood     time.Duration         // stopped by a signal
}

// begin is a usage that counts from a reading on.
func begin(now time.Time, p proc.Proc) usage {
	return usage{from: now, to: now, first: p.CPU, at: p.CPU, ready: proc.RunDelays(p.PID)}
}

// read takes a reading.
func (u *usage) read(now time.Time, p proc.Proc) {
	if p.Stopped() {
		u.stood += now.Sub(u.to)
	}
	for tid, delay := range proc.RunDelays(p.PID) {
		u.waited = max(u.waited, delay-u.ready[tid])
	}
	u.to, u.at = now, p.CPU
}

func (u usage) cpus() float64 {
	wall := u.to.Sub(u.from)
	if wall <= 0 {
		return 0
	}
	return float64(time.Duration(u.at-u.first)*proc.TickLength) / float64(wall)
}

// lag is the share of the time in which it would have gone on and could not.
func (u usage) lag() float64 {
	wall := u.to.Sub(u.from)
	if wall <= 0 {
		return 0
	}
	return min(1, float64(u.waited+u.stood)/float64(wall))
}

func newMeter(pid int, log string) *meter {
	return &meter{pid: pid, log: log, moved: time.Now(), used: map[proc.ID]usage{}}
}

// lively is the CPU time of a reading that counts as a sign of life where the
// client shows no bar.
const lively = 20 * time.Millisecond

// read takes a reading.
func (m *meter) read(now time.Time) {
	before := m.ticks()
	procs := m.readProcesses(now)
	barred, printed := m.readOutput()
	alive := printed || time.Duration(m.ticks()-before)*proc.TickLength >= lively
	if barred || m.total == 0 && alive {
		m.moved = now
	}
	if barred && !m.began {
		m.began = true
		for _, p := range procs {
			m.used[p.ID] = begin(now, p)
		}
	}
}

func (m *meter) readProcesses(now time.Time) []proc.Proc {
	procs, err := proc.Descendants(m.pid)
	if err != nil {
		return nil
	}
	if p, err := proc.Identify(m.pid); err == nil {
		procs = append(procs, p)
	}
	for _, p := range procs {
		u, known := m.used[p.ID]
		if !known {
			u = begin(now, p)
		}
		u.read(now, p)
		m.used[p.ID] = u
	}
	return procs
}

// bar is a counter of tqdm: "12/48 [00:03<00:09, 3.9it/s]".
var bar = regexp.MustCompile(`(\d{1,12})/(\d{1,12}) \[`)

// readOutput tells whether the bar has moved on, and whether anything was
// printed.
func (m *meter) readOutput() (moved, printed bool) {
	text, size := tailOf(m.log, 4<<10)
	printed, m.size = size != m.size, size
	all := bar.FindAllSubmatch(text, -1)
	if all == nil {
		return false, printed
	}
	newest := all[len(all)-1]
	done, _ := strconv.ParseInt(string(newest[1]), 10, 64)
	total, _ := strconv.ParseInt(string(newest[2]), 10, 64)
	moved = done != m.done || total != m.total // a second bar begins anew
	m.done, m.total = done, total
	return moved, printed
}

func (m *meter) ticks() (n uint64) {
	for _, u := range m.used {
		n += u.at
	}
	return n
}

// busiest is what the busiest process used while requests were under way.
func (m *meter) busiest() (most float64) {
	for _, u := range m.used {
		most = max(most, u.cpus())
	}
	return most
}

// lag is that of the process that was kept waiting most while requests were
// under way: what it would do was done later than it meant to.
func (m *meter) lag() (most float64) {
	for _, u := range m.used {
		most = max(most, u.lag())
	}
	return most
}

// span is the longest time between two readings of one process.
func (m *meter) span() (longest time.Duration) {
	for _, u := range m.used {
		longest = max(longest, u.to.Sub(u.from))
	}
	return longest
}

// cpus is the same for a run that has ended; one that was too short to be
// looked at twice is judged as a whole.
func (m *meter) cpus(state *os.ProcessState, took time.Duration) float64 {
	if m.began && m.span() > 0 {
		return m.busiest()
	}
	return float64(state.UserTime()+state.SystemTime()) / float64(max(took, time.Millisecond))
}

// others are the processes that were seen below the client.
func (m *meter) others() (ids []proc.ID) {
	for id := range m.used {
		if id.PID != m.pid {
			ids = append(ids, id)
		}
	}
	return ids
}

// tailOf reads the end of a file and its size.
func tailOf(path string, most int64) ([]byte, int64) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0
	}
	text, _ := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-most), most))
	return text, info.Size()
}
