package rehearsal

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNVMLAnswersFromTheBoard(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	r := readerOf(t, s)

	idle := r.ask("look")
	if idle.Driver != "580.95.05" || len(idle.GPUs) != 8 {
		t.Fatalf("driver %q, %d GPUs", idle.Driver, len(idle.GPUs))
	}
	want := seen{
		UUID: "GPU-5ea1a0c4-0000-4000-8000-000000000003", Name: "NVIDIA B200", Bus: "00000000:04:00.0",
		Total: 183359 << 20, Free: (183359 - 616) << 20, UsedOld: 616 << 20,
		Power: 141_000, Temp: 36, Clock: 120, Reasons: 1, Remapped: []int{0, 0},
		Fan: "Not Supported", Procs: map[string]uint64{}, ByUUID: "3", Capability: "10.0", Recovery: "Invalid Argument",
	}
	got := idle.GPUs[3]
	got.Took = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("an idle GPU (-want +got):\n%s", diff)
	}

	b := Board{GPUs: Machine(2), Driver: "570.1"}
	b.GPUs[0].Procs = map[int]uint64{4242: 4 * gib, 17: gib}
	b.GPUs[0].ECCUncorr, b.GPUs[0].RemappedUncorr, b.GPUs[0].RemapPending, b.GPUs[0].FanSpeed = 2, 11, true, 40
	b.GPUs[1].Code = 15
	if err := b.Write(s.Board); err != nil {
		t.Fatal(err)
	}
	now := r.ask("look")
	if now.Driver != "570.1" || len(now.GPUs) != 2 {
		t.Fatalf("driver %q, %d GPUs after a rewrite", now.Driver, len(now.GPUs))
	}
	if g := now.GPUs[0]; g.Used != 5*gib || g.ECC != 2 || g.Remapped[1] != 11 || !g.Pending || g.Fan != "" || g.Err != "" {
		t.Errorf("GPU 0: %+v", g)
	}
	if diff := cmp.Diff(map[string]uint64{"17": gib, "4242": 4 * gib}, now.GPUs[0].Procs); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	if g := now.GPUs[1]; g.Err != "GPU is lost" {
		t.Errorf("GPU 1 answers %q, want lost", g.Err)
	}
}

func TestNVMLMisbehaves(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	b := Board{GPUs: Machine(3)}
	b.GPUs[0].Codes = map[string]int{"nvmlDeviceGetPowerUsage": 3}
	b.GPUs[1].Hang = 1000
	if err := b.Write(s.Board); err != nil {
		t.Fatal(err)
	}
	l := readerOf(t, s).ask("look")
	if got := l.GPUs[0].Err; got != "Not Supported" {
		t.Errorf("a refused function answers %q", got)
	}
	if got := l.GPUs[1].Took; got < time.Second {
		t.Errorf("a hanging GPU answered after %v", got)
	}
	if got := l.GPUs[2]; got.Err != "" || got.Took >= time.Second {
		t.Errorf("its neighbour suffers: %+v", got)
	}

	b = Board{InitCode: 18}
	if err := b.Write(s.Board); err != nil {
		t.Fatal(err)
	}
	if got := readerOf(t, s).ask("look").Init; got != "Driver/library version mismatch" && !strings.Contains(got, "VERSION_MISMATCH") {
		t.Errorf("init answers %q", got)
	}
}

func TestNVMLWithoutASymbol(t *testing.T) {
	t.Parallel()
	s := *stageFor(t, "", 100)
	lib, err := BuildNVML(filepath.Join(t.TempDir(), "old"), "nvmlDeviceGetFanSpeed")
	if err != nil {
		t.Fatal(err)
	}
	s.Lib = lib
	if got := readerOf(t, &s).ask("look").GPUs[0]; got.MissingSymbol == "" {
		t.Error("the library has the symbol")
	}
}

func TestNVMLDeliversXids(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	if err := SendEvent(s.Board, 1, EventXid, 13); err != nil { // before anybody listens: lost
		t.Fatal(err)
	}
	r := readerOf(t, s)
	r.ask("look") // by now the reader has registered
	for _, e := range []struct{ kind, data uint64 }{{EventDoubleECC, 0}, {EventXid, 79}} {
		if err := SendEvent(s.Board, 5, e.kind, e.data); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := r.ask("wait").Event, "gpu 5 type 8 xid 79"; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}

func TestNVMLKnowsPartitions(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	b := Board{GPUs: Machine(2)}
	b.GPUs[1].MIG = []GPU{{UUID: "MIG-a", Total: 20 * gib}, {UUID: "MIG-b", Total: 40 * gib, Used: gib}}
	b.GPUs[1].Fields = map[int]uint64{230: 2}
	if err := b.Write(s.Board); err != nil {
		t.Fatal(err)
	}
	l := readerOf(t, s).ask("look")
	if got, want := l.GPUs[1].MIG, []string{"MIG-a 20", "MIG-b 40"}; !cmp.Equal(got, want) || l.GPUs[0].MIG != nil {
		t.Errorf("instances %v and %v, want none and %v", l.GPUs[0].MIG, got, want)
	}
	if l.GPUs[0].Recovery != "Invalid Argument" || l.GPUs[1].Recovery != "2" {
		t.Errorf("recovery actions %q and %q", l.GPUs[0].Recovery, l.GPUs[1].Recovery)
	}
	b.GPUs[0].MIG = make([]GPU, 9)
	if err := b.Write(s.Board); err == nil || !strings.Contains(err.Error(), "at most 8 are possible") {
		t.Errorf("nine instances: %v", err)
	}
}

func TestGPUFallsOffTheBus(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 80)
	lost, err := Find("gpu-lost")
	if err != nil {
		t.Fatal(err)
	}
	r := readerOf(t, s)
	r.ask("look")
	p := play(t, s, launchArgs(s, 2), lost)
	p.ends()
	if got, want := r.ask("wait").Event, "gpu 1 type 8 xid 79"; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
	if got := r.ask("look").GPUs[1].Err; got != "GPU is lost" {
		t.Errorf("GPU 1 answers %q", got)
	}
	play(t, s, launchArgs(s, 2)).sees("torch.AcceleratorError: CUDA error: unknown error")
}

// The curve of a launch, and memory that goes with its process.
func TestMemoryFollowsTheLaunch(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 30)
	r := readerOf(t, s)
	baseline := r.ask("look").GPUs[1].Used
	p := play(t, s, launchArgs(s, 2))

	used := func() uint64 { return r.ask("look").GPUs[1].Used }
	p.sees("TP1] Load weight begin.")
	until(t, "the construction takes the weights' memory", func() bool { return used() > 100*gib })
	p.sees(ready)
	g := r.ask("look").GPUs[1]
	if share := float64(g.Used) / float64(g.Total); share < 0.84 || share > 0.9 {
		t.Errorf("%.2f of the memory is used after ready", share)
	}
	holder := p.titled("sglang::scheduler_TP1")[0].pid
	if got := g.Procs[strconv.Itoa(holder)]; got != g.Used-baseline || len(g.Procs) != 1 {
		t.Errorf("TP1 (%d) is to hold it all, NVML says %v", holder, g.Procs)
	}

	ghost := Board{GPUs: Machine(8), Release: -1}
	if err := ghost.Write(s.Board); err != nil {
		t.Fatal(err)
	}
	p.clear()
	if g := r.ask("look").GPUs[1]; g.Used < 100*gib || len(g.Procs) != 0 {
		t.Errorf("with release -1 the memory stays and nobody is listed: %d bytes, %v", g.Used, g.Procs)
	}
	ghost.Release = 1
	if err := ghost.Write(s.Board); err != nil {
		t.Fatal(err)
	}
	until(t, "the memory is back at its baseline", func() bool { return used() == baseline })
	pids, err := Holders(s.Board)
	if err != nil || len(pids) > 1 { // the other rank's GPU has been looked at too
		t.Errorf("notes left: %v, %v", pids, err)
	}
}

// A rank whose GPU somebody else holds refuses to start, in SGLang's words.
func TestOccupiedGPU(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	b := Board{GPUs: Machine(8)}
	b.GPUs[1].Used = 60 * gib
	if err := b.Write(s.Board); err != nil {
		t.Fatal(err)
	}
	p := play(t, s, launchArgs(s, 2))
	p.sees("The memory capacity is unbalanced. Some GPUs may be occupied by other processes.")
	if how := p.ends(); how != "signal: killed" {
		t.Errorf("ended by %q", how)
	}
}
