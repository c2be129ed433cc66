//go:build gpu && cgo

package gpu

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// loadVariable names the program that puts a load on the GPU. These tests are
// built with -tags gpu and run by bench/gpu-check.sh on a machine that has one.
const loadVariable = "SGLAUNCH_GPU_LOAD"

// gpuLoad is that program, running.
type gpuLoad struct {
	*testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func startLoad(t *testing.T) *gpuLoad {
	t.Helper()
	l := &gpuLoad{T: t, cmd: exec.Command("python3", os.Getenv(loadVariable))}
	l.cmd.Stderr = os.Stderr
	in, err := l.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.cmd.Process.Kill(); l.cmd.Wait() })
	l.in, l.out = in, bufio.NewReader(out)
	l.heard("ready")
	return l
}

func (l *gpuLoad) heard(word string) {
	l.Helper()
	line, err := l.out.ReadString('\n')
	if strings.TrimSpace(line) != word {
		l.Fatalf("the load says %q, %v; want %q", line, err, word)
	}
}

func (l *gpuLoad) do(words string) {
	l.Helper()
	fmt.Fprintln(l.in, words)
	l.heard(strings.Fields(words)[0])
}

// realStage is a sampler on the machine's own driver.
func realStage(t *testing.T) *stage {
	s := &stage{T: t, Client: Start(Options{
		Argv:     []string{os.Args[0]},
		Env:      append(os.Environ(), samplerVariable+"=1"),
		Interval: 200 * time.Millisecond,
	})}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// first waits until the first GPU answers as wanted.
func (s *stage) first(what string, fits func(GPU) bool) GPU {
	s.Helper()
	sample := await(s, func(x Sample) bool { return len(x.GPUs) > 0 && fits(x.GPUs[0]) })
	s.Logf("%s: %+v", what, sample.GPUs[0])
	return sample.GPUs[0]
}

// What we read is what nvidia-smi reads.
func TestRealAgainstNvidiaSMI(t *testing.T) {
	s := realStage(t)
	sample := s.snapshot()
	t.Logf("driver %s, NVML %s, CUDA %s; a round took %v", sample.Driver, sample.NVML, sample.CUDA, sample.Took)
	out, err := exec.Command("nvidia-smi", "--query-gpu=uuid,name,memory.total,driver_version", "--format=csv,noheader,nounits").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(sample.GPUs) {
		t.Fatalf("nvidia-smi shows %d GPUs, we %d", len(lines), len(sample.GPUs))
	}
	for i, line := range lines {
		g := sample.GPUs[i]
		ours := fmt.Sprintf("%s, %s, %d, %s", g.UUID, g.Name, g.Total>>20, sample.Driver)
		if ours != line {
			t.Errorf("nvidia-smi says %q, we %q", line, ours)
		}
		if !g.Util.Known || !g.PowerMW.Known || !g.TempC.Known || !g.SMClock.Known || !g.LimitMW.Known || !g.EnergyMJ.Known || !g.PState.Known || g.PCI == "" || g.Processes == nil || g.Err != "" || g.Trouble() != "" {
			t.Errorf("GPU %d: %+v, trouble %q", i, g, g.Trouble())
		}
		if sum := g.Used + g.Free + g.Reserved; sum != g.Total {
			t.Errorf("GPU %d: used, free and reserved make %d of %d bytes", i, sum, g.Total)
		}
	}
	if news, err := ReadKernelLog(context.Background(), time.Now().Add(-24*time.Hour), sample.GPUs); err != nil {
		t.Logf("kernel log: %v", err)
	} else {
		t.Logf("Xids of the last day: %v", Incidents(news.Xids))
	}
}

// Allocation, memory traffic and a spin look as the verdicts take them to look.
func TestRealLoad(t *testing.T) {
	s := realStage(t)
	idle := s.first("idle", GPU.MemoryKnown)
	load := startLoad(t)
	load.do("allocate 4096")
	s.first("allocated", func(g GPU) bool { return g.Used >= idle.Used+4<<30 })
	load.do("traffic")
	s.first("traffic", func(g GPU) bool { return g.Util.Above(80) && g.MemUtil.Above(20) })
	load.do("spin")
	s.first("spin", func(g GPU) bool { return g.Util.Above(95) && g.MemUtil.Known && !g.MemUtil.Above(3) })
	load.do("rest")
	s.first("rest", func(g GPU) bool { return g.Util.Known && !g.Util.Above(5) })
}

// The energy counter and the power agree.
func TestRealEnergy(t *testing.T) {
	s := realStage(t)
	load := startLoad(t)
	load.do("spin")
	first := s.snapshot()
	drawn, n := 0.0, 0
	last := await(s, func(x Sample) bool {
		drawn, n = drawn+float64(x.GPUs[0].PowerMW.Value)/1000, n+1
		return x.At.Sub(first.At) > 10*time.Second
	})
	counted := float64(last.GPUs[0].EnergyMJ.Value-first.GPUs[0].EnergyMJ.Value) / 1000 / last.At.Sub(first.At).Seconds()
	t.Logf("%.0f W by the counter, %.0f W by %d looks, %d W allowed, P%d", counted, drawn/float64(n), n, last.GPUs[0].LimitMW.Value/1000, last.GPUs[0].PState.Value)
	if mean := drawn / float64(n); counted < 0.8*mean || counted > 1.2*mean {
		t.Errorf("the counter says %.0f W, the power %.0f W", counted, mean)
	}
}

// A process that is killed in the middle of its work lets go, and that is seen.
func TestRealRelease(t *testing.T) {
	s := realStage(t)
	before := s.snapshot().GPUs
	marks := NewWatermark(before)
	load := startLoad(t)
	load.do("allocate 8192")
	load.do("traffic")
	during := s.snapshot()
	marks.Add(during)
	pid := load.cmd.Process.Pid
	ours := func(p int) bool { return p == pid }
	if r := Released(before, during.GPUs, ours, marks.Needs()); r.Done && len(during.GPUs[0].Processes) > 0 &&
		slices.ContainsFunc(during.GPUs[0].Processes, func(p Process) bool { return p.PID == pid }) {
		t.Errorf("while it works: %+v", r)
	}
	t.Logf("processes while it works: %+v; needs %+v", during.GPUs[0].Processes, marks.Needs())
	load.cmd.Process.Kill()
	load.cmd.Wait()
	killed := time.Now()
	for {
		r := Released(before, s.snapshot().GPUs, ours, marks.Needs())
		if r.Done {
			t.Logf("released %v after the kill: %+v", time.Since(killed), r)
			return
		}
		if time.Since(killed) > time.Minute {
			t.Fatalf("a minute after the kill: %+v", r)
		}
	}
}

// What sampling costs: of time, of CPU, and of the latency of a close.
func TestRealCost(t *testing.T) {
	s := realStage(t)
	s.snapshot()
	const rounds = 50
	began, used := time.Now(), cpu(t)
	for range rounds {
		s.snapshot()
	}
	t.Logf("with process lists: %v a round, %v of CPU", time.Since(began)/rounds, (cpu(t)-used)/rounds)
	s.Pace(10 * time.Second)
	began, used = time.Now(), cpu(t)
	<-time.After(20 * time.Second)
	t.Logf("at one round in 10 s: %.3f %% of a core", 100*(cpu(t)-used).Seconds()/time.Since(began).Seconds())
	began = time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("closed after %v", time.Since(began))
}
