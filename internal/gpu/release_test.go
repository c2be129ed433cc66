package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const gib = 1 << 30

// held is a GPU of 100 GiB with so much used and these processes.
func using(used int, processes ...Process) GPU {
	if processes == nil {
		processes = []Process{}
	}
	return GPU{UUID: "GPU-a", Total: 100 * gib, Used: uint64(used) * gib, Free: uint64(100-used) * gib, Util: Read(0), Processes: processes}
}

func process(pid, gibs int) Process { return Process{PID: pid, Bytes: Read(int64(gibs) * gib)} }

func TestReleased(t *testing.T) {
	ours := func(pid int) bool { return pid < 100 }
	spinning := using(0)
	spinning.Util = Read(100)
	lost := GPU{UUID: "GPU-a", Lost: true}
	untold := using(50, Process{PID: 500})
	silent := using(50)
	silent.Processes = nil
	for _, c := range []struct {
		name          string
		before, after GPU
		need          uint64 // GiB; 0 = none told
		want          Release
	}{
		{"free", using(0), using(0), 80, Release{Done: true}},
		{"ours still there", using(0), using(60, process(7, 60)), 0,
			Release{Ours: []Holder{{UUID: "GPU-a", PID: 7, Bytes: Read(60 * gib)}}}},
		{"foreign grew, need free", using(10, process(500, 10)), using(20, process(500, 20)), 80,
			Release{Done: true, Foreign: []Holder{{UUID: "GPU-a", PID: 500, Bytes: Read(20 * gib)}}}},
		{"foreign came, need taken", using(0), using(60, process(500, 60)), 80,
			Release{Foreign: []Holder{{UUID: "GPU-a", PID: 500, Bytes: Read(60 * gib)}}, Short: []Need{{"GPU-a", 40 * gib}}}},
		{"foreign as before", using(10, process(500, 10)), using(10, process(500, 10)), 80, Release{Done: true}},
		{"ghost memory", using(0), using(60), 0, Release{Ghosts: []Ghost{{UUID: "GPU-a", Bytes: 60 * gib}}}},
		{"ghost memory, need free", using(0), using(10), 80, Release{Done: true, Ghosts: []Ghost{{UUID: "GPU-a", Bytes: 10 * gib}}}},
		{"ghost behind a foreign end", using(30, process(500, 30)), using(30), 0, Release{Ghosts: []Ghost{{UUID: "GPU-a", Bytes: 30 * gib}}}},
		{"ghost work", using(0), spinning, 80, Release{Ghosts: []Ghost{{UUID: "GPU-a", Util: Read(100)}}}},
		{"was busy before", spinning, spinning, 80, Release{Done: true}},
		{"lost", using(0), lost, 80, Release{Unknown: true}},
		{"a process tells no memory", using(0), untold, 0, Release{Done: true, Foreign: []Holder{{UUID: "GPU-a", PID: 500}}}},
		{"no process list, need free", using(0), silent, 40, Release{Done: true}},
		{"no process list, need taken", using(0), silent, 80, Release{Short: []Need{{"GPU-a", 50 * gib}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var need []Need
			if c.need > 0 {
				need = []Need{{"GPU-a", c.need * gib}}
			}
			got := Released([]GPU{c.before}, []GPU{c.after}, ours, need)
			if c.name == "lost" {
				got.Short = nil
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if r := Released([]GPU{using(0)}, nil, ours, nil); r.Done || !r.Unknown {
		t.Errorf("nothing told: %+v", r)
	}
	if r := Released(nil, []GPU{using(60)}, ours, nil); !r.Done {
		t.Errorf("nothing known of before: %+v", r)
	}
}

func TestWatermark(t *testing.T) {
	other := GPU{UUID: "GPU-b", Total: 100 * gib, Used: 50 * gib}
	w := NewWatermark([]GPU{using(10), {UUID: "GPU-c"}})
	for _, used := range []int{10, 5, 70, 40} {
		w.Add(Sample{GPUs: []GPU{using(used), other}})
	}
	w.Add(Sample{})
	if diff := cmp.Diff([]Need{{"GPU-a", 60 * gib}}, w.Needs()); diff != "" {
		t.Error(diff)
	}
}

func TestXidAction(t *testing.T) {
	told := func(action int64) GPU { return GPU{Recovery: Read(action)} }
	for _, c := range []struct {
		code int
		now  GPU
		want XidAction
	}{
		{31, GPU{}, XidRestartApp},
		{45, GPU{}, XidIgnore},
		{79, GPU{}, XidReboot},
		{95, GPU{}, XidResetGPU},
		{48, GPU{}, XidResetGPU},
		{74, GPU{}, XidAskDriver},
		{74, told(0), XidRestartApp},
		{9999, GPU{}, XidUnknown},
		{95, told(0), XidRestartApp},
		{48, told(0), XidRestartApp},
		{45, told(0), XidIgnore},
		{48, told(1), XidResetGPU},
		{31, told(2), XidReboot},
		{31, told(4), XidResetGPU},
		{31, told(99), XidResetGPU},
		{31, GPU{Lost: true, Recovery: Read(0)}, XidReboot},
	} {
		if got := (Xid{Code: c.code}).Action(c.now); got != c.want {
			t.Errorf("Xid %d with %+v: got %s, want %s", c.code, c.now.Recovery, got, c.want)
		}
	}
	// What the line in the kernel log says goes before the code, and before a sample that may be older.
	for _, c := range []struct {
		x    Xid
		now  GPU
		want XidAction
	}{
		{Xid{Code: 149, Fatal: true}, GPU{}, XidResetGPU},
		{Xid{Code: 149, Harmless: true}, GPU{}, XidIgnore},
		{Xid{Code: 149, Fatal: true}, told(0), XidRestartApp},
		{Xid{Code: 154, Recovery: Read(1)}, told(0), XidResetGPU},
		{Xid{Code: 154, Recovery: Read(2)}, GPU{}, XidReboot},
		{Xid{Code: 154, Recovery: Read(0)}, told(1), XidResetGPU},
	} {
		if got := c.x.Action(c.now); got != c.want {
			t.Errorf("%+v with %+v: got %s, want %s", c.x, c.now.Recovery, got, c.want)
		}
	}
	for action, want := range map[XidAction]bool{XidIgnore: true, XidRestartApp: true, XidAskDriver: true, XidUnknown: true, XidResetGPU: false, XidReboot: false, XidInspect: false} {
		if action.Relaunch() != want {
			t.Errorf("%s: a relaunch may help: %v", action, !want)
		}
	}
}

func TestXidInWords(t *testing.T) {
	for x, want := range map[Xid]string{
		{Code: 79, Index: 3}:   "Xid 79 on GPU 3: the GPU has fallen off the bus",
		{Code: 9999, Index: 0}: "Xid 9999 on GPU 0",
		{Code: 31, Index: -1}:  "Xid 31 on an unknown GPU: GPU memory page fault, mostly an illegal address of the application",
	} {
		if got := x.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTrouble(t *testing.T) {
	for want, g := range map[string]GPU{
		"":                                    {Recovery: Read(0), Fabric: FabricCompleted},
		"it has fallen off the bus":           {Lost: true},
		"the driver asks to reset the GPU":    {Recovery: Read(1)},
		"it has no spare memory rows left":    {Remapped: Remapped{Failed: true}},
		"its NVSwitch fabric is not up":       {Fabric: FabricInProgress},
		"its NVSwitch fabric failed: Unknown": {Fabric: "Unknown"},
		"the driver asks to reboot the node":  {Recovery: Read(2)},
		"the driver asks to ask NVIDIA what recovery action 42 means": {Recovery: Read(42)},
	} {
		if got := g.Trouble(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWorsened(t *testing.T) {
	before := GPU{ECCUncorrected: Read(1), Remapped: Remapped{Uncorrected: Read(11)}}
	after := GPU{ECCUncorrected: Read(3), Remapped: Remapped{Uncorrected: Read(12), Pending: true, Failed: true}}
	want := []string{"2 new uncorrected memory errors", "1 more memory rows remapped", "memory rows wait for a reset to be remapped", "no spare memory row is left"}
	if diff := cmp.Diff(want, Worsened(before, after)); diff != "" {
		t.Error(diff)
	}
	for _, unchanged := range [][2]GPU{{after, after}, {{}, after}, {after, {}}} {
		unchanged[1].Remapped.Pending, unchanged[1].Remapped.Failed = unchanged[0].Remapped.Pending, unchanged[0].Remapped.Failed
		if got := Worsened(unchanged[0], unchanged[1]); got != nil {
			t.Errorf("got %q", got)
		}
	}
}
