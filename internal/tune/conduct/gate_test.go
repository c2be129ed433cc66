package conduct

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/config"
	"sglaunch/internal/gpu"
	"sglaunch/internal/proc"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
)

// yard is a site with a driver that the test plays.
type yard struct {
	*site
	fake *gpu.Fake
	idle gpu.GPU
}

func newYard(t *testing.T) *yard {
	t.Helper()
	fake := gpu.NewFake()
	y := &yard{fake: fake, idle: gpu.GPU{
		UUID: "GPU-1", Total: 80 << 30, Used: 1 << 30, Free: 79 << 30, TempC: gpu.Read(40), Processes: []gpu.Process{},
		ECCUncorrected: gpu.Read(0), SMClock: gpu.Read(1980), PowerMW: gpu.Read(300_000), Throttle: gpu.Read(0),
	}}
	y.site = &site{
		dir: t.TempDir(), began: time.Now(), tell: func(text string) { t.Log(text) }, folder: "/",
		state: statedir.Dir{State: t.TempDir(), Runtime: t.TempDir()},
		base:  config.Config{Server: config.Server{Command: strings.Fields("python -m sglang.launch_server --model-path /m --port 1")}},
		eyes:  openEyes(fake, func(s gpu.Sample) []gpu.GPU { return s.GPUs }),
	}
	t.Cleanup(y.eyes.close)
	y.put(y.idle)
	return y
}

func (y *yard) put(g gpu.GPU) { y.fake.Put(gpu.Sample{At: time.Now(), GPUs: []gpu.GPU{g}}) }

// sleeper is a process that the test may find again, marked or not.
func sleeper(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// Each thing that must hold before a launch, broken alone. Nobody is ended.
func TestGate(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, y *yard)
		want  tune.Settled // texts that are to be contained
	}{
		{"all well", func(t *testing.T, y *yard) {}, tune.Settled{OK: true}},
		{"memory that nobody holds", func(t *testing.T, y *yard) {
			y.idle.Used += 5 << 30
			y.put(y.idle)
		}, tune.Settled{Problem: "GPU 0 holds 5.0 GiB more than before the night"}},
		{"a foreign process", func(t *testing.T, y *yard) {
			pid := sleeper(t).Process.Pid
			y.idle.Used += 5 << 30
			y.idle.Processes = []gpu.Process{{PID: pid, Bytes: gpu.Read(5 << 30)}}
			y.put(y.idle)
		}, tune.Settled{Problem: "(sleep) works on GPU 0 and is not ours"}},
		{"a process of another namespace", func(t *testing.T, y *yard) {
			y.idle.Used += 1 << 20
			y.idle.Processes = []gpu.Process{{PID: 1 << 29, Bytes: gpu.Read(1 << 20)}}
			y.put(y.idle)
		}, tune.Settled{OK: true}},
		{"a process of an earlier trial", func(t *testing.T, y *yard) { sleeper(t, y.marker()) },
			tune.Settled{Problem: "(sleep) of an earlier launch still lives"}},
		{"a taken port", func(t *testing.T, y *yard) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			y.base.Server.Command = strings.Fields(fmt.Sprintf("python -m sglang.launch_server --model-path /m --port %d", l.Addr().(*net.TCPAddr).Port))
		}, tune.Settled{Problem: "port"}},
		{"an Xid", func(t *testing.T, y *yard) {
			y.fake.Put(gpu.Xid{At: time.Now(), Code: 48, Index: 0})
			for y.eyes.xid(y.began) == "" { // the source's news come by another goroutine
				time.Sleep(time.Millisecond)
			}
		}, tune.Settled{Hardware: "Xid 48 on GPU 0"}},
		{"memory errors", func(t *testing.T, y *yard) {
			y.idle.ECCUncorrected = gpu.Read(3)
			y.put(y.idle)
		}, tune.Settled{Hardware: "GPU 0: uncorrected memory errors went from 0 to 3"}},
		{"too warm", func(t *testing.T, y *yard) {
			y.study.Gate.Temperature = 60
			y.idle.TempC = gpu.Read(71)
			y.put(y.idle)
		}, tune.Settled{OK: true, Hot: "GPU 0 has 71 °C"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newYard(t)
			if s := y.settle(t.Context(), tune.Settle{Until: time.Now()}); !s.OK {
				t.Fatalf("before anything was spoilt: %+v", s)
			}
			c.spoil(t, y)
			s := y.settle(t.Context(), tune.Settle{Until: time.Now().Add(50 * time.Millisecond)})
			ok := s.OK == c.want.OK
			for text, want := range map[string]string{s.Problem: c.want.Problem, s.Hardware: c.want.Hardware, s.Hot: c.want.Hot} {
				ok = ok && strings.Contains(text, want) && (want != "" || text == "")
			}
			if !ok {
				t.Errorf("the gate says %+v", s)
			}
		})
	}
}

// What passes is waited for.
func TestGateWaits(t *testing.T) {
	y := newYard(t)
	if s := y.settle(t.Context(), tune.Settle{Until: time.Now()}); !s.OK {
		t.Fatalf("%+v", s)
	}
	cool := y.idle
	y.study.Gate.Temperature, y.idle.TempC = 60, gpu.Read(70)
	y.put(y.idle)
	time.AfterFunc(300*time.Millisecond, func() { y.put(cool) })
	if s := y.settle(t.Context(), tune.Settle{Until: time.Now().Add(time.Minute)}); !s.OK || s.Hot != "" || s.Waited < 250*time.Millisecond {
		t.Errorf("%+v", s)
	}
}

// The level before the night is kept: a tuner that comes back to a GPU with
// leftovers does not take them for it.
func TestIdleLevelIsKept(t *testing.T) {
	y := newYard(t)
	if s := y.settle(t.Context(), tune.Settle{Until: time.Now()}); !s.OK {
		t.Fatalf("%+v", s)
	}
	again := *y.site
	again.idle = nil
	y.idle.Used += 30 << 30
	y.put(y.idle)
	if s := again.settle(t.Context(), tune.Settle{Until: time.Now()}); s.OK || !strings.Contains(s.Problem, "30.0 GiB more") {
		t.Errorf("%+v", s)
	}
}

// A window says what was seen in it, and of how much of it.
func TestWindow(t *testing.T) {
	y := newYard(t)
	y.fake = gpu.NewFake() // of its own: nothing that was put before is still on its way
	y.eyes = openEyes(y.fake, func(s gpu.Sample) []gpu.GPU { return s.GPUs })
	t.Cleanup(y.eyes.close)
	path := y.path("gpus.jsonl")
	w := y.eyes.watch(path)
	w.began = w.began.Add(-4 * time.Second)
	samples := func() int { y.eyes.mu.Lock(); defer y.eyes.mu.Unlock(); return len(w.at) }
	for i, throttle := range []int64{0, 0x20, 0x04, 0x44} {
		g := y.idle
		g.LimitMW, g.Util, g.PState = gpu.Read(600_000-int64(i)*40_000), gpu.Read(int64(i)), gpu.Read(int64(3-i))
		g.Throttle, g.TempC, g.SMClock = gpu.Read(throttle), gpu.Read(int64(50+i)), gpu.Read(int64(1900+i*20))
		y.fake.Put(gpu.Sample{At: w.began.Add(time.Duration(i+1) * time.Second), GPUs: []gpu.GPU{g}})
		for samples() <= i { // the source's news come by another goroutine
			time.Sleep(time.Millisecond)
		}
	}
	got := y.eyes.done(w)
	if got.Throttled != 0.5 || got.PowerCap != 0.5 || got.ClockMHz != 1930 || got.Celsius != 51.5 || got.Watts != 300 || got.Sampled < 0.99 || got.Hardware != "" || got.LimitWatts != 540 || got.PState != "P2" {
		t.Errorf("%+v", got)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 4 {
		t.Errorf("the record holds %d lines, %v", strings.Count(string(text), "\n"), err)
	}
	late := &window{began: time.Now()}
	late.add(gpu.Sample{At: late.began.Add(-time.Second)}, []gpu.GPU{y.idle})
	if got := late.sum(time.Now()); got.Celsius != 0 {
		t.Errorf("a sample from before the window counts: %+v", got)
	}
	hole := &window{began: time.Now().Add(-10 * time.Second)}
	hole.add(gpu.Sample{At: time.Now().Add(-9 * time.Second)}, []gpu.GPU{y.idle})
	hole.add(gpu.Sample{At: time.Now().Add(-time.Second)}, []gpu.GPU{y.idle})
	if s := hole.sum(time.Now()).Sampled; s < 0.15 || s > 0.25 {
		t.Errorf("with a hole of 8 s in 10 the window is sampled to %v", s)
	}
	if got := hole.sum(time.Now()); got.LimitWatts != 0 || got.PState != "" {
		t.Errorf("what no GPU tells is told: %+v", got)
	}
	if none := (&window{began: time.Now()}).sum(time.Now()); none.Sampled != 0 || none.Throttled != 0 {
		t.Errorf("nothing sampled: %+v", none)
	}
}

// What a killed tuner left behind is ended; what is not of the study lives on.
func TestSweep(t *testing.T) {
	y := newYard(t)
	y.study.Name = "night"
	for _, dir := range []string{"run", "launches", "patches"} {
		if err := os.MkdirAll(y.path("state", dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	y.state.State, y.state.Runtime = y.path("state"), y.path("state", "run")
	ours, other, none := sleeper(t, y.marker()), sleeper(t, y.marker()+"-other"), sleeper(t)
	if err := y.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	dead := func(cmd *exec.Cmd) bool {
		p, err := proc.Identify(cmd.Process.Pid)
		return err != nil || p.Dead()
	}
	if got := []bool{dead(ours), dead(other), dead(none)}; !slices.Equal(got, []bool{true, false, false}) {
		t.Errorf("ended: of the study, of another, of none: %v", got)
	}
}
