package conduct

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sglaunch/internal/gpu"
	"sglaunch/internal/tune"
)

// startOn calls start, which makes a process, on these CPUs: a child inherits
// those of the thread that makes it. The thread is not used again.
func startOn(cpus []int, start func() error) error {
	if cpus == nil {
		return start()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		var set unix.CPUSet
		for _, cpu := range cpus {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			done <- fmt.Errorf("cannot use the CPUs %s: %w", tune.CPUsText(cpus), err)
			return
		}
		done <- start()
	}()
	return <-done
}

// ourCPUs are those that we may use.
func ourCPUs() (cpus []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for cpu := range len(set) * strconv.IntSize {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// placeClients chooses the CPUs of each load's client. Where the study names some
// that are not there, which is a problem for a night that begins, those away from
// the server's GPUs stand in for them: a night that goes on may meet another
// machine than it began on, after a reboot or in a smaller container, and is worth
// more than its placement.
func (s *site) placeClients(ctx context.Context) (problems []string) {
	gpus, _ := s.eyes.look(ctx)
	s.clients = map[string]placement{}
	for _, l := range s.study.Loads {
		cpus, err := clientCPUs(l, gpus)
		place := placement{cpus: cpus}
		if err != nil {
			problems = append(problems, err.Error())
			place.cpus = awayFrom(gpus, ourCPUs(), "/sys")
			place.moved = fmt.Sprintf("the client ran on %s, not on the CPUs that the study names: %s", place, l.CPUs)
		}
		s.clients[l.Name] = place
	}
	return problems
}

// placement is where a load's client runs.
type placement struct {
	cpus  []int  // nil: any
	moved string // it is not where the study wants it; "": it is
}

func (p placement) String() string {
	if p.cpus == nil {
		return "any CPU"
	}
	return "the CPUs " + tune.CPUsText(p.cpus)
}

// clientCPUs are those that a load's client gets: the ones that the study names,
// else those away from the server's GPUs; nil where it may use any. The error
// says that one is not there.
func clientCPUs(l tune.Load, gpus []gpu.GPU) ([]int, error) {
	switch l.CPUs {
	case tune.AnyCPU:
		return nil, nil
	case "":
		return awayFrom(gpus, ourCPUs(), "/sys"), nil
	}
	named, err := tune.ParseCPUs(l.CPUs)
	if err != nil {
		return nil, err
	}
	ours := ourCPUs()
	for _, cpu := range named {
		if !slices.Contains(ours, cpu) {
			return nil, fmt.Errorf("cannot run the client of the load %s on CPU %d: sglaunch may use %s", l.Name, cpu, tune.CPUsText(ours))
		}
	}
	return named, nil
}

// awayFrom are our CPUs on NUMA nodes that none of the GPUs is on: there a client
// takes nothing from the server's processes. It is nil where a GPU's node is not
// known, and where every node has one.
func awayFrom(gpus []gpu.GPU, ours []int, sys string) []int {
	near := map[int]bool{}
	for _, g := range gpus {
		bus := strings.ToLower(g.PCI)
		if domain, rest, ok := strings.Cut(bus, ":"); ok && len(domain) > 4 {
			bus = domain[len(domain)-4:] + ":" + rest // NVML has eight digits of it, the kernel four
		}
		text, _ := os.ReadFile(filepath.Join(sys, "bus/pci/devices", bus, "numa_node"))
		node, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || node < 0 {
			return nil
		}
		text, _ = os.ReadFile(filepath.Join(sys, "devices/system/node", fmt.Sprintf("node%d", node), "cpulist"))
		cpus, err := tune.ParseCPUs(strings.TrimSpace(string(text)))
		if err != nil {
			return nil
		}
		for _, cpu := range cpus {
			near[cpu] = true
		}
	}
	away := slices.DeleteFunc(slices.Clone(ours), func(cpu int) bool { return near[cpu] })
	if len(gpus) == 0 || len(away) == 0 {
		return nil
	}
	return away
}
