package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// RunDelays tells for each thread of a process how long it has been ready to run
// and had no CPU, since it began. It is empty where the process has gone or the
// kernel does not count.
func RunDelays(pid int) map[int]time.Duration {
	folder := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	delays := map[int]time.Duration{}
	for _, t := range threads {
		text, err := os.ReadFile(folder + "/" + t.Name() + "/schedstat") // time on a CPU, time without one, turns
		fields := bytes.Fields(text)
		if tid, bad := strconv.Atoi(t.Name()); err == nil && bad == nil && len(fields) >= 2 {
			delays[tid] = time.Duration(number(fields[1]))
		}
	}
	return delays
}

// Stopped tells that a signal or a debugger holds the process.
func (p Proc) Stopped() bool { return p.State == 'T' || p.State == 't' }
