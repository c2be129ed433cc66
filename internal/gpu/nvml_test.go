//go:build cgo

package gpu

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/rehearsal"
)

func TestSampleOfRealGoNVML(t *testing.T) {
	s := prepare(t, 2)
	g := &s.board.GPUs[1]
	g.Util, g.MemUtil, g.Power, g.Reasons = 97, 41, 700_000, 0x44
	g.PowerLimit, g.Energy, g.PState = 750_000, 1<<33, 2
	g.ECCCorr, g.ECCUncorr, g.RemappedCorr, g.RemappedUncorr, g.RemapPending = 3, 1, 2, 4, true
	g.Procs = map[int]uint64{4711: 5 << 30}
	s.write()
	sample := started(s, nil).snapshot()

	if sample.Driver != "580.95.05" || sample.CUDA != "13.0" || sample.NVML == "" || sample.Err != "" || len(sample.GPUs) != 2 {
		t.Errorf("the sample says %+v", sample)
	}
	got := sample.GPUs[1]
	want := GPU{
		Index: 1, UUID: g.UUID, Name: g.Name, PCI: "00000000:02:00.0",
		Total: g.Total, Used: 5 << 30, Free: g.Total - 5<<30 - g.Reserved, Reserved: g.Reserved,
		Util: Read(97), MemUtil: Read(41), PowerMW: Read(700_000), LimitMW: Read(750_000), EnergyMJ: Read(1 << 33), PState: Read(2), TempC: got.TempC,
		SMClock: got.SMClock, MemClock: Read(3996), Throttle: Read(0x44),
		ECCCorrected: Read(3), ECCUncorrected: Read(1),
		Remapped:  Remapped{Corrected: Read(2), Uncorrected: Read(4), Pending: true},
		Fabric:    FabricCompleted,
		Processes: []Process{{PID: 4711, Bytes: Read(5 << 30)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !got.TempC.Known || !got.SMClock.Known {
		t.Errorf("temperature or clock unknown: %+v", got)
	}
	if diff := cmp.Diff([]string{"power cap", "thermal slowdown (hardware)"}, got.ThrottleReasons()); diff != "" {
		t.Error(diff)
	}
	if idle := sample.GPUs[0]; idle.Processes == nil || len(idle.Processes) != 0 {
		t.Errorf("an idle GPU has the processes %v, want none, told", idle.Processes)
	}
}

// started starts a client on a prepared stage.
func started(s *stage, adjust func(*Options), without ...string) *stage {
	s.Helper()
	n := newStage(s.T, 0, func(o *Options) {
		o.Env = s.env(standIn(s.T, without...))
		if adjust != nil {
			adjust(o)
		}
	}, without...)
	n.path, n.board = s.path, s.board
	return n
}

// optional are the functions that an older driver may lack.
var optional = strings.Fields(`nvmlDeviceGetMemoryInfo_v2 nvmlDeviceGetUtilizationRates
	nvmlDeviceGetPowerUsage nvmlDeviceGetEnforcedPowerLimit nvmlDeviceGetTotalEnergyConsumption
	nvmlDeviceGetPerformanceState nvmlDeviceGetTemperature nvmlDeviceGetClockInfo
	nvmlDeviceGetTotalEccErrors nvmlDeviceGetRemappedRows nvmlDeviceGetGpuFabricInfo
	nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons
	nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetGraphicsRunningProcesses_v3
	nvmlDeviceGetMPSComputeRunningProcesses_v3 nvmlDeviceGetMigMode nvmlEventSetCreate
	nvmlSystemGetNVMLVersion nvmlSystemGetCudaDriverVersion nvmlDeviceGetPciInfo_v3
	nvmlDeviceGetName nvmlSystemGetDriverVersion nvmlEventSetFree`)

func TestFunctionsThatTheLibraryLacks(t *testing.T) {
	s := newStage(t, 1, nil, optional...)
	sample := s.snapshot()
	g, is := sample.GPUs[0], s.board.GPUs[0]
	want := GPU{UUID: is.UUID, Total: is.Total, Used: is.Reserved, Free: is.Total - is.Reserved}
	if diff := cmp.Diff(want, g); diff != "" {
		t.Errorf("what is not told must stay unknown, memory comes by the older function:\n%s", diff)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestEachFunctionRefused(t *testing.T) {
	s := newStage(t, 1, nil)
	for _, code := range []int{3, 4, 15, 999} {
		for _, name := range append(optional, "nvmlDeviceGetUUID", "nvmlDeviceGetMemoryInfo") {
			if !strings.HasPrefix(name, "nvmlDevice") {
				continue
			}
			s.board.Codes = map[string]int{name: code}
			s.write()
			g := s.snapshot().GPUs[0]
			switch {
			case code == 3 && g.Err != "":
				t.Errorf("%s not supported is told as an error: %s", name, g.Err)
			case g.Lost && code != 15:
				t.Errorf("%s refused with %d makes the GPU lost", name, code)
			}
			if g.Trouble() != "" && !g.Lost {
				t.Errorf("%s refused with %d is called trouble: %s", name, code, g.Trouble())
			}
		}
	}
}

// A figure that the driver does not support is absent, not zero, and so is a
// P-state that it calls unknown.
func TestWhatIsNotSupportedIsAbsent(t *testing.T) {
	s := newStage(t, 1, nil)
	s.board.Codes = map[string]int{
		"nvmlDeviceGetEnforcedPowerLimit": 3, "nvmlDeviceGetTotalEnergyConsumption": 3, "nvmlDeviceGetPerformanceState": 3,
	}
	s.write()
	if g := s.snapshot().GPUs[0]; g.LimitMW.Known || g.EnergyMJ.Known || g.PState.Known {
		t.Errorf("limit %+v, energy %+v, P-state %+v", g.LimitMW, g.EnergyMJ, g.PState)
	}
	s.board.Codes, s.board.GPUs[0].PState = nil, 32
	s.write()
	if g := s.snapshot().GPUs[0]; !g.LimitMW.Is(1_000_000) || !g.EnergyMJ.Known || g.PState.Known {
		t.Errorf("limit %+v, energy %+v, P-state %+v", g.LimitMW, g.EnergyMJ, g.PState)
	}
}

// The energy counter goes up by the power that is drawn: at least over the time that
// surely lay between two readings, and at most over that in which both were asked for.
func TestEnergyOfTheStandIn(t *testing.T) {
	const watts, rounding = 500, 2.0 // joules: the counter knows milliseconds
	s := newStage(t, 1, nil)
	s.board.GPUs[0].Power = 1000 * watts
	s.write()
	began := time.Now()
	first := s.snapshot().GPUs[0].EnergyMJ.Value
	between := time.Now()
	for joules := 0.0; joules < 100; {
		least := watts * time.Since(between).Seconds()
		joules = float64(s.snapshot().GPUs[0].EnergyMJ.Value-first) / 1000
		if most := watts * time.Since(began).Seconds(); joules < least-rounding || joules > most+rounding {
			t.Fatalf("it counts %.0f J, at %d W %.0f to %.0f", joules, watts, least, most)
		}
	}
}

func TestLostGPUAndItsReturn(t *testing.T) {
	s := newStage(t, 2, nil)
	await[Sample](s, nil) // of the time when it was there
	s.board.GPUs[1].Code = 15
	s.write()
	sample := s.snapshot()
	g := sample.GPUs[1]
	if !g.Lost || !strings.Contains(g.Err, "lost") || g.MemoryKnown() || g.UUID == "" || g.Trouble() == "" {
		t.Errorf("a lost GPU is told as %+v", g)
	}
	if sample.GPUs[0].Lost || !sample.GPUs[0].MemoryKnown() {
		t.Errorf("its neighbour is told as %+v", sample.GPUs[0])
	}
	s.board.GPUs[1].Code = 0
	s.write()
	if g := s.snapshot().GPUs[1]; g.Lost || !g.MemoryKnown() || g.Err != "" {
		t.Errorf("after a reset it is told as %+v", g)
	}
}

func TestXidWhileSampling(t *testing.T) {
	s := newStage(t, 3, nil)
	await[Sample](s, nil) // the event set exists before the first sample
	for _, code := range []uint64{31, 79} {
		if err := rehearsal.SendEvent(s.path, 2, rehearsal.EventXid, code); err != nil {
			t.Fatal(err)
		}
		x := await[Xid](s, nil)
		if x.Code != int(code) || x.Index != 2 || x.UUID != s.board.GPUs[2].UUID || x.At.IsZero() {
			t.Errorf("sent Xid %d on GPU 2, got %+v", code, x)
		}
	}
}

func TestDriverThatRefusesThenComes(t *testing.T) {
	s := prepare(t, 1)
	s.board.InitCode = 9
	s.write()
	s = started(s, nil)
	sample := await[Sample](s, nil)
	if sample.Code != 9 || !strings.Contains(sample.Err, "not loaded") || len(sample.GPUs) != 0 {
		t.Errorf("a driver that is not loaded is told as %+v", sample)
	}
	s.board.InitCode = 0
	s.write()
	if sample := s.snapshot(); len(sample.GPUs) != 1 || sample.Err != "" {
		t.Errorf("once it is loaded, a snapshot finds %+v", sample)
	}
}

func TestVersionMismatchIsTold(t *testing.T) {
	s := prepare(t, 1)
	s.board.InitCode = 18
	s.write()
	sample := started(s, nil).snapshot()
	if sample.Code != 18 || !strings.Contains(sample.Err, "different versions") {
		t.Errorf("a version mismatch is told as %+v", sample)
	}
}

func TestEagerBindingInTheEnvironment(t *testing.T) {
	s := prepare(t, 1)
	s = started(s, func(o *Options) { o.Env = append(o.Env, "LD_BIND_NOW=1") })
	if sample := s.snapshot(); len(sample.GPUs) != 1 {
		t.Errorf("with LD_BIND_NOW=1 the sample is %+v", sample)
	}
}
