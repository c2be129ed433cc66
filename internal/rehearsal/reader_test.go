package rehearsal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlReader makes the test binary a program that looks at GPUs through the
// real go-nvml. The library is loaded once a process, hence the processes.
const nvmlReader = "SGLAUNCH_REHEARSAL_TEST_READER"

// look is what the reader answers to the request "look".
type look struct {
	Init   string
	Driver string
	GPUs   []seen
	Event  string // answer to "wait"
}

// seen is one GPU through go-nvml. Err is the first answer that was no success.
type seen struct {
	Err                string
	UUID, Name, Bus    string
	Total, Used, Free  uint64
	UsedOld            uint64
	Util, MemUtil      uint32
	Power, Temp, Clock uint32
	Reasons, ECC       uint64
	Remapped           []int
	Pending            bool
	Fan, MissingSymbol string
	Procs              map[string]uint64
	ByUUID, Capability string
	MIG                []string
	Recovery           string
	Took               time.Duration
}

func readNVML() {
	answers := json.NewEncoder(os.Stdout)
	init := nvml.Init()
	var set nvml.EventSet
	if init == nvml.SUCCESS {
		set, _ = nvml.EventSetCreate()
		for i := range count() {
			d, _ := nvml.DeviceGetHandleByIndex(i)
			_ = nvml.DeviceRegisterEvents(d, nvml.EventTypeXidCriticalError, set)
		}
	}
	requests := bufio.NewScanner(os.Stdin)
	for requests.Scan() {
		l := look{Init: nvml.ErrorString(init)}
		switch {
		case init != nvml.SUCCESS:
		case requests.Text() == "wait":
			e, ret := nvml.EventSetWait(set, 5000)
			if ret == nvml.SUCCESS {
				l.Event = fmt.Sprintf("gpu %d type %d xid %d", indexOf(e.Device), e.EventType, e.EventData)
			} else {
				l.Event = nvml.ErrorString(ret)
			}
		default:
			l.Driver, _ = nvml.SystemGetDriverVersion()
			for i := range count() {
				l.GPUs = append(l.GPUs, see(i))
			}
		}
		_ = answers.Encode(l)
	}
}

// indexOf compares handles: a GPU that is lost does not tell its index any more.
func indexOf(device nvml.Device) int {
	for i := range count() {
		if d, _ := nvml.DeviceGetHandleByIndex(i); d == device {
			return i
		}
	}
	return -1
}

func count() int {
	n, _ := nvml.DeviceGetCount()
	return n
}

func see(i int) seen {
	s, begin := seen{Procs: map[string]uint64{}}, time.Now()
	check := func(ret nvml.Return) {
		if ret != nvml.SUCCESS && s.Err == "" {
			s.Err = nvml.ErrorString(ret)
		}
	}
	d, ret := nvml.DeviceGetHandleByIndex(i)
	check(ret)
	s.UUID, ret = d.GetUUID()
	check(ret)
	s.Took = time.Since(begin)
	s.Name, ret = d.GetName()
	check(ret)
	pci, ret := d.GetPciInfo()
	check(ret)
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		s.Bus += string(rune(c))
	}
	m, ret := d.GetMemoryInfo_v2()
	check(ret)
	s.Total, s.Used, s.Free = m.Total, m.Used, m.Free
	old, ret := d.GetMemoryInfo()
	check(ret)
	s.UsedOld = old.Used
	u, ret := d.GetUtilizationRates()
	check(ret)
	s.Util, s.MemUtil = u.Gpu, u.Memory
	s.Power, ret = d.GetPowerUsage()
	check(ret)
	s.Temp, ret = d.GetTemperature(nvml.TEMPERATURE_GPU)
	check(ret)
	s.Clock, ret = d.GetClockInfo(nvml.CLOCK_SM)
	check(ret)
	s.Reasons, ret = d.GetCurrentClocksEventReasons()
	check(ret)
	s.ECC, ret = d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	check(ret)
	a, b, pending, _, ret := d.GetRemappedRows()
	check(ret)
	s.Remapped, s.Pending = []int{a, b}, pending
	procs, ret := d.GetComputeRunningProcesses()
	check(ret)
	for _, p := range procs {
		s.Procs[strconv.Itoa(int(p.Pid))] = p.UsedGpuMemory
	}
	// go-nvml dies of a symbol that the library lacks: it is to be looked up first.
	if err := nvml.Extensions().LookupSymbol("nvmlDeviceGetFanSpeed"); err != nil {
		s.MissingSymbol = "nvmlDeviceGetFanSpeed"
	} else if _, ret = d.GetFanSpeed(); ret != nvml.SUCCESS {
		s.Fan = nvml.ErrorString(ret)
	}
	major, minor, _ := d.GetCudaComputeCapability()
	s.Capability = fmt.Sprintf("%d.%d", major, minor)
	if again, ret := nvml.DeviceGetHandleByUUID(s.UUID); ret == nvml.SUCCESS {
		index, _ := again.GetIndex()
		s.ByUUID = strconv.Itoa(index)
	}
	s.MIG, s.Recovery = instances(d), recovery(d)
	return s
}

func instances(d nvml.Device) (found []string) {
	if mode, _, ret := d.GetMigMode(); ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil
	}
	most, _ := d.GetMaxMigDeviceCount()
	for i := range most {
		if instance, ret := d.GetMigDeviceHandleByIndex(i); ret == nvml.SUCCESS {
			uuid, _ := instance.GetUUID()
			m, _ := instance.GetMemoryInfo()
			found = append(found, fmt.Sprintf("%s %d", uuid, m.Total/gib))
		}
	}
	return found
}

func recovery(d nvml.Device) string {
	values := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	if ret := d.GetFieldValues(values); ret != nvml.SUCCESS {
		return nvml.ErrorString(ret)
	}
	if ret := nvml.Return(values[0].NvmlReturn); ret != nvml.SUCCESS {
		return nvml.ErrorString(ret)
	}
	return strconv.Itoa(int(values[0].Value[0]))
}

// reader is a running reader process.
type reader struct {
	t       *testing.T
	in      io.Writer
	answers *json.Decoder
}

// readerOf starts a reader of the stage's library and board.
func readerOf(t *testing.T, s *Stage) *reader {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), s.Env()...), nvmlReader+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the reader ended with %v", err)
		}
	})
	return &reader{t: t, in: in, answers: json.NewDecoder(out)}
}

func (r *reader) ask(request string) look {
	r.t.Helper()
	if _, err := fmt.Fprintln(r.in, request); err != nil {
		r.t.Fatal(err)
	}
	var l look
	if err := r.answers.Decode(&l); err != nil {
		r.t.Fatal(err)
	}
	return l
}
