package conduct

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/tune"
)

// A client runs where it was told to, and nobody else moves.
func TestClientIsPinned(t *testing.T) {
	t.Parallel()
	before := ourCPUs()
	last := before[len(before)-1:]
	c := clientOf(t, "exec python3 -c 'import os; print(sorted(os.sched_getaffinity(0)))'")
	c.On = last
	if end := c.Run(t.Context()); end.Problem != "" {
		t.Fatal(end.Problem)
	}
	if printed, _ := os.ReadFile(c.Log); strings.TrimSpace(string(printed)) != fmt.Sprint(last) {
		t.Errorf("it ran on %s, want %v", printed, last)
	}
	for range 20 { // threads come and go: none may be left with the client's
		out, err := exec.Command("python3", "-c", "import os; print(len(os.sched_getaffinity(0)))").Output()
		if err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(len(before)) {
			t.Fatalf("another child has %s CPUs, not %d: %v", out, len(before), err)
		}
	}
	c = clientOf(t, "true")
	c.On = []int{8000}
	if end := c.Run(t.Context()); !strings.Contains(end.Problem, "cannot use the CPUs 8000: invalid argument") {
		t.Errorf("on a CPU that is not there: %q", end.Problem)
	}
}

func TestClientCPUsOfALoad(t *testing.T) {
	ours := ourCPUs()
	got, err := clientCPUs(tune.Load{Name: "chat", CPUs: fmt.Sprint(ours[0])}, nil)
	if err != nil || !slices.Equal(got, ours[:1]) {
		t.Errorf("%v, %v", got, err)
	}
	_, err = clientCPUs(tune.Load{Name: "chat", CPUs: "0,8000"}, nil)
	if want := "cannot run the client of the load chat on CPU 8000: sglaunch may use " + tune.CPUsText(ours); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, cpus := range []string{tune.AnyCPU, ""} {
		if got, err := clientCPUs(tune.Load{CPUs: cpus}, nil); got != nil || err != nil {
			t.Errorf("%q: %v, %v", cpus, got, err)
		}
	}
}

// A night that begins is refused where its study names CPUs that are not there; one
// that goes on runs its clients where it would without, and says so, in its lines
// and beside each figure.
func TestNamedCPUsThatAreGone(t *testing.T) {
	y := newYard(t)
	y.study = smallStudy(func(s *tune.Study) { s.Loads[0].CPUs = "0,8000" })
	y.base.Server.Command = []string{"true", "--model-path", "/m"} // whose flags and packages nobody can ask for
	var told []string
	y.tell = func(text string) { told = append(told, text) }
	var refused *RefusedError
	if _, err := y.plan(t.Context(), &tune.Night{}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "cannot run the client of the load chat on CPU 8000") {
		t.Errorf("a night that begins: %v", err)
	}
	night, err := tune.Fold([]tune.Record{{Seq: 1, At: time.Now(), Body: refused.Plan.Planned}})
	if err != nil {
		t.Fatal(err)
	}
	told = nil
	if _, err := y.plan(t.Context(), night); err != nil {
		t.Errorf("a night that goes on: %v", err)
	}
	if all := strings.Join(told, "\n"); !strings.Contains(all, "the load chat names the CPUs 0,8000") || !strings.Contains(all, "the night goes on with it on any CPU") {
		t.Errorf("it says: %s", all)
	}
	m := tune.Measured{Point: tune.Point{Load: "chat"}}
	(&attempt{site: y.site}).noteMoved(&m)
	if want := []string{"the client ran on any CPU, not on the CPUs that the study names: 0,8000"}; !slices.Equal(m.Result.Notes, want) {
		t.Errorf("beside the figure stands %q, want %q", m.Result.Notes, want)
	}
	if cpus := y.clients["chat"].cpus; cpus != nil {
		t.Errorf("its client runs on %v", cpus)
	}
}

// Away from the GPUs is where no node of theirs is, and nowhere where that is
// not known.
func TestAwayFromTheGPUs(t *testing.T) {
	sys := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(sys, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("devices/system/node/node0/cpulist", "0-3,8-11")
	write("devices/system/node/node1/cpulist", "4-7,12-15")
	write("bus/pci/devices/0000:3b:00.0/numa_node", "0")
	write("bus/pci/devices/0000:d8:00.0/numa_node", "1")
	write("bus/pci/devices/0000:99:00.0/numa_node", "-1")
	all, _ := tune.ParseCPUs("0-15")
	gpus := func(buses ...string) (list []gpu.GPU) {
		for _, bus := range buses {
			list = append(list, gpu.GPU{PCI: bus})
		}
		return list
	}
	for _, tt := range []struct {
		name string
		gpus []gpu.GPU
		ours []int
		want string
	}{
		{"one node", gpus("00000000:3B:00.0"), all, "4-7,12-15"},
		{"what we may use of it", gpus("0000:3B:00.0"), []int{0, 5}, "5"},
		{"both nodes", gpus("00000000:3B:00.0", "00000000:D8:00.0"), all, ""},
		{"no node", gpus("00000000:99:00.0"), all, ""},
		{"an unknown GPU", gpus("00000000:3B:00.0", "00000000:11:00.0"), all, ""},
		{"none of it is ours", gpus("00000000:3B:00.0"), []int{0, 1}, ""},
		{"no GPU", nil, all, ""},
	} {
		if got := tune.CPUsText(awayFrom(tt.gpus, tt.ours, sys)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
