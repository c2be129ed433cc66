package gpu

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestXidOfLine(t *testing.T) {
	gpus := []GPU{{Index: 0, UUID: "GPU-a", PCI: "00000000:1A:00.0"}, {Index: 5, UUID: "GPU-b", PCI: "00000018:01:00.0"}}
	for line, want := range map[string]Xid{
		"NVRM: Xid (PCI:0000:1a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.":               {Code: 79, Index: 0, UUID: "GPU-a"},
		"NVRM: Xid (PCI:0018:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)": {Code: 154, Index: 5, UUID: "GPU-b", Recovery: Read(2)},
		"NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000)":            {Code: 149, Index: 5, UUID: "GPU-b", Fatal: true},
		"NVRM: Xid (PCI:0018:01:00): 145, RLW_REMAP       Nonfatal XC1 i0 Link 08 (0x00000004 0x80000000)":           {Code: 145, Index: 5, UUID: "GPU-b", Harmless: true},
		"NVRM: Xid (PCI:0018:01:00): 31, pid=1 Fatal , Nonfatal x":                                                   {Code: 31, Index: 5, UUID: "GPU-b"},
		"NVRM: Xid (PCI:0000:1A:00 GPU-I:03): 94, pid=1, Contained: SM (0x1).":                                       {Code: 94, Index: 0, UUID: "GPU-a"},
		"[12.3] NVRM: Xid (PCI:0000:ff:00): 31, pid=7":                                                               {Code: 31, Index: -1},
	} {
		if got, ok := xidOfLine(line, gpus); !ok || got != want {
			t.Errorf("%s: got %+v %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "NVRM: GPU 0000:1a:00.0: RmInitAdapter failed!", "NVRM: Xid (PCI:0000:1a:00): 99999999999999999999", "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028"} {
		if x, ok := xidOfLine(line, gpus); ok {
			t.Errorf("%s: got %+v", line, x)
		}
	}
}

// Where the kernel log can be written, an Xid that is planted there is found;
// where it cannot be read, that is said.
func TestReadKernelLog(t *testing.T) {
	began := time.Now().Add(-time.Second)
	bus := fmt.Sprintf("%04x:%02x:%02x", os.Getpid()%0x10000, os.Getpid()%251, 1)
	gpus := []GPU{{Index: 3, UUID: "GPU-x", PCI: "0000" + strings.ToUpper(bus) + ".0"}}
	planted := plant("<4>NVRM: Xid (PCI:" + bus + "): 31, pid=1, name=test of sglaunch")
	plant("<3>Memory cgroup out of memory: Killed process 1073741824 (test of sglaunch) total-vm:1kB, UID:0")
	news, err := ReadKernelLog(context.Background(), began, gpus)
	switch {
	case err != nil && !strings.Contains(err.Error(), "cannot read the kernel log"):
		t.Error(err)
	case err == nil && planted:
		var ours []Xid
		for _, x := range news.Xids {
			if x.Index == 3 {
				ours = append(ours, x)
			}
		}
		if len(ours) != 1 || ours[0].Code != 31 || time.Since(ours[0].At) > time.Minute || ours[0].At.Before(began) {
			t.Errorf("planted one Xid 31, found %+v", ours)
		}
		killed := func(k OOMKill) bool { return k.PID == 1<<30 && strings.Contains(k.Text, "test of sglaunch") }
		if !slices.ContainsFunc(news.Kills, killed) {
			t.Errorf("planted a kill, found %+v", news.Kills)
		}
	}
	if later, err := ReadKernelLog(context.Background(), time.Now().Add(time.Hour), gpus); err == nil && len(later.Xids)+len(later.Kills) > 0 {
		t.Errorf("found news of the future: %+v", later)
	}
}

func plant(line string) bool {
	f, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.WriteString(line + "\n")
	return err == nil
}

func TestIncidents(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	xids := []Xid{
		{Code: 31, Index: 1, At: at(0)}, {Code: 45, Index: 1, At: at(1)}, {Code: 31, Index: 1, At: at(100)},
		{Code: 31, Index: 2, At: at(101)}, {Code: 31, Index: 1, At: at(280)}, {Code: 31, Index: 1, At: at(461)},
	}
	want := []Incident{
		{Xid: xids[0], Count: 3, Last: at(280)}, {Xid: xids[1], Count: 1, Last: at(1)},
		{Xid: xids[3], Count: 1, Last: at(101)}, {Xid: xids[5], Count: 1, Last: at(461)},
	}
	if diff := cmp.Diff(want, Incidents(xids)); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add("4,1,123,-;NVRM: Xid (PCI:0000:1a:00): 79, x\n SUBSYSTEM=pci\n")
	f.Add(";;,,")
	f.Fuzz(func(t *testing.T, record string) {
		at, text, ok := parseRecord(record, time.Time{})
		var news KernelNews
		if news.add(at, text, []GPU{{PCI: "0:1:2.3"}}); ok && len(news.Xids) > 0 && !strings.Contains(record, "NVRM: Xid") {
			t.Errorf("%q gives %+v", record, news)
		}
	})
}
