package rehearsal

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/google/renameio/v2"
)

// Bounds of a board, and the number of the first MIG instance in it. The
// stand-in library knows the same numbers.
const (
	maxGPUs  = 64
	maxMIG   = 8
	firstMIG = 100
)

// Board is the machine that the stand-in NVML library and the server's ranks
// see. It is written to a file that both read again at every look, so that a
// test may rewrite it (Write renames a new file over the old) while programs
// have the library open.
//
// Beside the file PATH stand PATH.d, where each living process of the stand-in
// server keeps a note of what it holds, and PATH.events, to which SendEvent
// appends. A note whose process is gone counts no more, after Release.
type Board struct {
	GPUs    []GPU
	Driver  string // version; "" means 580.95.05
	CUDA    int    // driver's CUDA version, 13000 = 13.0; 0 means that
	Release int    // milliseconds that memory stays, unnamed, after its process died; -1 means for ever

	InitCode int            // what nvmlInit answers; 0 is success
	InitHang int            // milliseconds that nvmlInit takes
	Codes    map[string]int // answers of single functions on every GPU, as "nvmlDeviceGetPowerUsage": 3
}

// GPU is one GPU of a Board. Figures are those of the idle GPU; what the
// processes of the stand-in server hold and do comes on top.
type GPU struct {
	Name     string
	UUID     string
	Total    uint64         // bytes
	Reserved uint64         // bytes that the driver keeps
	Used     uint64         // bytes held by nobody on the list of processes
	Procs    map[int]uint64 // foreign processes: pid and bytes; taken to be alive for ever

	Util        int    // percent
	MemUtil     int    // percent: memory traffic
	Temperature int    // degrees Celsius
	Power       int    // milliwatts
	PowerLimit  int    // milliwatts that it may draw; 0 means 1000000
	Energy      uint64 // millijoules that its counter shows; 0 means that it counts the power
	PState      int    // 0 is the fastest
	SMClock     int    // MHz
	MemClock    int    // MHz
	FanSpeed    int    // percent; 0 means that it has no fan (not supported)
	Reasons     uint64 // bits: why the clocks are what they are

	ECCCorr, ECCUncorr           uint64 // errors since the driver was loaded
	RemappedCorr, RemappedUncorr uint32 // rows
	RemapPending, RemapFailed    bool
	Fabric                       int            // state of the NVLink fabric; 0 stands for 3, completed
	Fields                       map[int]uint64 // field values by number
	MIG                          []GPU          // instances, if the GPU is partitioned; 8 at most

	Code  int            // what every call about this GPU answers; 15 means lost
	Codes map[string]int // the same for single functions
	Hang  int            // milliseconds that every call about this GPU takes
}

// gib is a GiB, the unit that SGLang calls GB.
const gib = 1 << 30

// Machine is an idle board's worth of n data-centre GPUs of 180 GB.
func Machine(n int) []GPU {
	gpus := make([]GPU, n)
	for i := range gpus {
		gpus[i] = GPU{
			Name: "NVIDIA B200", UUID: fmt.Sprintf("GPU-5ea1a0c4-0000-4000-8000-%012x", i),
			Total: 183359 << 20, Reserved: 616 << 20,
			Temperature: 31, Power: 141_000, SMClock: 120, MemClock: 3996, Reasons: 1,
		}
	}
	return gpus
}

// Write puts the board into the file, whole or not at all. The folder of the
// file must exist; the folder for the notes is made.
func (b Board) Write(path string) error {
	if len(b.GPUs) > maxGPUs {
		return fmt.Errorf("cannot write a board of %d GPUs: at most %d are possible", len(b.GPUs), maxGPUs)
	}
	for i, g := range b.GPUs {
		if len(g.MIG) > maxMIG {
			return fmt.Errorf("cannot write a board with %d instances on GPU %d: at most %d are possible", len(g.MIG), i, maxMIG)
		}
	}
	if err := os.MkdirAll(path+".d", 0o755); err != nil {
		return fmt.Errorf("cannot write the board: %w", err)
	}
	if err := renameio.WriteFile(path, []byte(b.String()), 0o644, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("cannot write the board: %w", err)
	}
	return nil
}

// The event types that NVML knows; an Xid's number is the event's data.
const (
	EventXid       = 8
	EventDoubleECC = 2
)

// SendEvent makes every event set that waits on the board at path deliver one
// event of that GPU: SendEvent(path, 3, EventXid, 79) is "fallen off the bus".
func SendEvent(path string, gpu int, kind, data uint64) error {
	f, err := os.OpenFile(path+".events", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("cannot send an event: %w", err)
	}
	_, err = fmt.Fprintf(f, "%d %d %d\n", gpu, kind, data) // one write: readers see whole lines
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("cannot send an event: %w", err)
	}
	return nil
}

// Holders lists the processes that have a note on the board at path, alive or
// not. It is for tests that want to know who was there.
func Holders(path string) ([]int, error) {
	entries, err := os.ReadDir(path + ".d")
	if err != nil {
		return nil, fmt.Errorf("cannot list the holders of GPU memory: %w", err)
	}
	var pids []int
	for _, e := range entries {
		var pid int
		if n, _ := fmt.Sscanf(filepath.Base(e.Name()), "%d", &pid); n == 1 {
			pids = append(pids, pid)
		}
	}
	sort.Ints(pids)
	return pids, nil
}
