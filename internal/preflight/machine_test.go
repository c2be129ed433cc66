package preflight

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/rehearsal"
	"sglaunch/internal/sglangcmd"
)

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain"), "x")
	write(t, filepath.Join(dir, "moved"), "#!/gone/venv/bin/python\n")
	write(t, filepath.Join(dir, "good"), "#!/bin/sh\n")
	write(t, filepath.Join(dir, "crlf"), "#!/bin/sh\r\n")
	write(t, filepath.Join(dir, "bare"), "echo\n")
	for _, name := range []string{"moved", "good", "crlf", "bare"} {
		os.Chmod(filepath.Join(dir, name), 0o755)
	}
	noServer := want{Warn, "", "not recognisably"}
	for argv, wants := range map[string][]want{
		"python3 -m sglang.launch_server":         {{OK, "", "python3 is /"}},
		"env python3 -m sglang.launch_server":     {{OK, "", "env is /"}, {OK, "", "python3 is /"}},
		"env nopython3 -m sglang.launch_server":   {{OK, "", "env is"}},
		"env /no/python3 -m sglang.launch_server": {{OK, "", "env is"}, {Fail, "bad_argument", "/no/python3"}},
		"uv-is-missing run python -m x":           {{Fail, "bad_argument", "no program"}},
		"./plain":                                 {{Fail, "permission_denied", "may not be executed"}},
		"./moved":                                 {{Fail, "bad_argument", "/gone/venv/bin/python"}},
		"./crlf":                                  {{Fail, "bad_argument", "CR LF"}},
		"./bare":                                  {{Fail, "bad_argument", "has no #! line"}},
		"./good":                                  {{OK, "", "good"}, noServer},
		".":                                       {{Fail, "permission_denied", "may not be executed"}},
		"":                                        {{Fail, "bad_argument", "there is no command"}},
	} {
		s := server(t)
		s.Argv, s.Dir = strings.Fields(argv), dir
		t.Run(argv, func(t *testing.T) { expect(t, s.check("command"), wants...) })
	}
	s := server(t)
	s.Argv = []string{"good"}
	s.Env = []string{"PATH=" + dir}
	expect(t, s.check("command"), want{OK, "", dir}, noServer)
	s.Env = []string{"PATH=/nonexistent"}
	expect(t, s.check("command"), want{Fail, "bad_argument", "no program"})
}

// The interpreter is asked where the package is, and imports none of it.
func TestPackage(t *testing.T) {
	s := server(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	s.Argv[0] = python
	site := t.TempDir()
	s.Env = append(s.Env, "PYTHONPATH="+site)
	expect(t, s.check("package"), want{Fail, "import_error", "finds no package sglang"})
	if err := os.Mkdir(filepath.Join(site, "sglang"), 0o755); err != nil {
		t.Fatal(err)
	}
	expect(t, s.check("package"), want{Fail, "import_error", "finds no package sglang"})
	write(t, filepath.Join(site, "sglang/__init__.py"), "raise SystemExit('imported')")
	write(t, filepath.Join(site, "sglang-0.5.9.dist-info/METADATA"), "Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.9\n")
	expect(t, s.check("package"), want{OK, "", "sglang 0.5.9 in " + site})
	s.Argv = append([]string{"uv", "run"}, s.Argv...)
	expect(t, s.check("package")) // uv chooses the environment: nothing is known
}

func TestPorts(t *testing.T) {
	taken := listen(t, "127.0.0.1")
	held := strconv.Itoa(taken)
	self := fmt.Sprintf("port %d (--port) is taken by process %d (", taken, os.Getpid())
	expect(t, server(t, "--port", held).check("ports"), want{Fail, "port_in_use", self})
	expect(t, server(t, "--port", held, "--host", "0.0.0.0").check("ports"), want{Fail, "port_in_use", self})
	expect(t, server(t, "--port", free(t)).check("ports"), want{OK, "", "1 of the ports"})
	expect(t, server(t, "--port", free(t), "--dist-init-addr", "127.0.0.1:"+held).check("ports"),
		want{Fail, "port_in_use", "--dist-init-addr"}, want{OK, "", "1 of"})
	expect(t, server(t, "--port", free(t), "--nccl-port", held).check("ports"),
		want{Fail, "port_in_use", "--nccl-port"}, want{OK, "", "1 of"})
	expect(t, server(t, "--port", free(t), "--dist-init-addr", "10.0.0.1:"+held, "--nnodes", "2", "--node-rank", "1").check("ports"),
		want{OK, "", "1 of"})
	expect(t, server(t, "--port", strconv.Itoa(taken-attentionOffset), "--dp", "2", "--enable-dp-attention").check("ports")[:1],
		want{Warn, "", "DP attention"})
	expect(t, server(t, "--port", "70000").check("ports"), want{Fail, "bad_argument", "out of range"})
	expect(t, server(t, "--port", free(t), "--host", "192.0.2.1").check("ports"), want{Fail, "bad_argument", "none of this machine"})

	argv := server(t, "--port", held).Argv
	if busy := BusyPorts(sglangcmd.Parse(argv, nil, "")); len(busy) != 1 || !strings.HasPrefix(busy[0], self) {
		t.Errorf("busy ports: %q", busy)
	}
	if busy := BusyPorts(sglangcmd.Parse([]string{"sleep", "--port", held}, nil, "")); busy != nil {
		t.Errorf("busy ports of no server: %q", busy)
	}
}

// A connection that waits for its end does not keep the server from binding.
func TestPortInTimeWait(t *testing.T) {
	python := exec.Command("python3", "-c", `
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname())
a, _ = s.accept()
a.close(); c.close(); print(s.getsockname()[1]); s.close()`)
	out, err := python.Output()
	if err != nil {
		t.Fatal(err)
	}
	expect(t, server(t, "--port", strings.TrimSpace(string(out))).check("ports"), want{OK, "", "1 of"})
}

func TestAttentionPortsStayInRange(t *testing.T) {
	for number, base := range map[int]int{30000: 30233, 65500: 65267, 65296: 65529, 65297: 65064} {
		if got := attentionBase(number); got != base {
			t.Errorf("for --port %d: got %d, want %d", number, got, base)
		}
	}
}

func TestNodes(t *testing.T) {
	for flags, wants := range map[string][]want{
		"": nil,
		"--nnodes 2 --dist-init-addr 10.0.0.1:5000 --node-rank 1": {{OK, "", "node 1 of 2"}},
		"--nnodes 2":                           {{Warn, "", "no --dist-init-addr"}},
		"--nnodes 2 --dist-init-addr 10.0.0.1": {{Fail, "bad_argument", "no port"}},
		"--nnodes 2 --dist-init-addr 10.0.0.1:5000 --node-rank 2": {{Fail, "bad_argument", "--node-rank 2 of 2"}},
		"--nnodes 2 --dist-init-addr localhost:5000":              {{Warn, "", "this node alone"}},
	} {
		expect(t, server(t, strings.Fields(flags)...).check("nodes"), wants...)
	}
}

// board is a sample of n healthy, empty GPUs of 100 GiB.
func board(n int) *gpu.Sample {
	s := &gpu.Sample{}
	for i := range n {
		s.GPUs = append(s.GPUs, gpu.GPU{
			Index: i, UUID: fmt.Sprintf("GPU-%d", i), Name: "B200", Total: 100 << 30, Free: 100 << 30, Processes: []gpu.Process{},
		})
	}
	return s
}

func TestGPUs(t *testing.T) {
	with := func(change func(*gpu.Sample)) *gpu.Sample { s := board(2); change(s); return s }
	second := func(change func(*gpu.GPU)) *gpu.Sample { return with(func(s *gpu.Sample) { change(&s.GPUs[1]) }) }
	for name, c := range map[string]struct {
		sample *gpu.Sample
		flags  string
		wants  []want
	}{
		"healthy":        {board(2), "--tp 2", []want{{OK, "", "2 of 2 GPUs, B200"}}},
		"not asked":      {nil, "--tp 2", []want{{OK, "", "not looked at"}}},
		"on the CPU":     {with(func(s *gpu.Sample) { s.Code, s.Err = 9, "x" }), "--device cpu", []want{{OK, "", "not looked at"}}},
		"not loaded":     {with(func(s *gpu.Sample) { s.Code, s.Err = 9, "not loaded" }), "", []want{{Fail, "no_gpu", "not loaded"}}},
		"mismatch":       {with(func(s *gpu.Sample) { s.Code, s.Err = 18, "versions" }), "", []want{{Fail, "driver_mismatch", "versions"}}},
		"refuses":        {with(func(s *gpu.Sample) { s.Code, s.Err = 999, "unknown" }), "", []want{{Warn, "", "unknown"}}},
		"none":           {&gpu.Sample{}, "", []want{{Fail, "no_gpu", "no GPU"}}},
		"too few":        {board(2), "--tp 4", []want{{Fail, "no_gpu", "wants 4 GPUs"}}},
		"lost":           {second(func(g *gpu.GPU) { g.Lost = true }), "--tp 2", []want{{Fail, "gpu_lost", "GPU 1"}}},
		"lost, not ours": {second(func(g *gpu.GPU) { g.Lost = true }), "--tp 1", []want{{OK, "", "1 of 2"}}},
		"fabric":         {second(func(g *gpu.GPU) { g.Fabric = gpu.FabricInProgress }), "--tp 2", []want{{Fail, "fabric_not_ready", "GPU 1"}}},
		"wants a reset":  {second(func(g *gpu.GPU) { g.Recovery = gpu.Read(1) }), "--tp 2", []want{{Fail, "gpu_lost", "reset the GPU"}}},
		"no spare rows":  {second(func(g *gpu.GPU) { g.Remapped.Failed = true }), "--tp 2", []want{{Warn, "", "spare"}}},
		"rows pending":   {second(func(g *gpu.GPU) { g.Remapped.Pending = true }), "--tp 2", []want{{Warn, "", "wait for a reset"}}},
		"memory errors":  {second(func(g *gpu.GPU) { g.ECCUncorrected = gpu.Read(2) }), "--tp 2", []want{{Warn, "", "2 uncorrected"}}},
		"hot":            {second(func(g *gpu.GPU) { g.Throttle = gpu.Read(0x44) }), "--tp 2", []want{{Warn, "", "thermal"}}},
		"at its power":   {second(func(g *gpu.GPU) { g.Throttle = gpu.Read(0x04) }), "--tp 2", []want{{OK, "", "2 of 2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t, strings.Fields(c.flags)...)
			s.GPUs = c.sample
			expect(t, s.check("gpus"), c.wants...)
		})
	}
	s := server(t, "--tp", "2")
	s.GPUs, s.Devices = board(2), []string{"GPU-1", "GPU-9"}
	expect(t, s.check("gpus"), want{Warn, "", "GPU-9"})
	s = server(t, "--tp", "2")
	s.GPUs, s.Env = board(2), append(s.Env, "CUDA_VISIBLE_DEVICES=")
	expect(t, s.check("gpus"), want{Fail, "no_gpu", "hides every GPU"})
}

func TestGPUMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	checkpointIn(t, dir, 1)
	blind := false
	look := func(used uint64, processes []gpu.Process, flags ...string) []Check {
		s := server(t, append([]string{"--model-path", dir}, flags...)...)
		s.GPUs, s.Blind = board(1), blind
		g := &s.GPUs.GPUs[0]
		g.Used, g.Free, g.Processes = used, g.Total-used, processes
		return s.check("gpu_memory")
	}
	none := []gpu.Process{}
	expect(t, look(0, none), want{OK, "", "100 GiB free"})
	expect(t, look(20<<30, none), want{Warn, "", "held by nobody"})
	foreign := []gpu.Process{{PID: 1 << 30, Bytes: gpu.Read(20 << 30)}, {PID: 1<<30 + 1}}
	expect(t, look(20<<30, foreign), want{Warn, "", "20.0 GiB by process 1073741824 (of which nothing is known here), process"})

	os.Truncate(filepath.Join(dir, "model-00001-of-00001.safetensors"), 0)
	write(t, filepath.Join(dir, "model-00001-of-00001.safetensors"), "")
	sparse(t, filepath.Join(dir, "model-00001-of-00001.safetensors"), 90<<30)
	expect(t, look(0, none), want{OK, "", "100 GiB free"})
	expect(t, look(20<<30, none), want{Fail, "gpu_ghost", "GPU 0 has 80.0 GiB free, the weights alone take 90.0 GiB"})
	neighbour := []gpu.Process{{PID: os.Getpid(), Bytes: gpu.Read(19 << 30)}}
	expect(t, look(20<<30, neighbour), want{Fail, "gpu_memory_held", fmt.Sprintf("20.0 GiB held: 19.0 GiB by process %d (", os.Getpid())})
	blind = true // of what a container cannot see nothing is said
	expect(t, look(20<<30, neighbour), want{Fail, "gpu_memory_held", "20.0 GiB held outside of this container"})
	expect(t, look(20<<30, none), want{Fail, "gpu_memory_held", "held outside"})
	blind = false
	expect(t, look(20<<30, none, "--quantization", "fp8"), want{Warn, "", "held by nobody"})
	sparse(t, filepath.Join(dir, "model-00001-of-00001.safetensors"), 200<<30)
	expect(t, look(0, none), want{Fail, "oom_weights", "200 GiB of each GPU, which has 100 GiB"})

	s := server(t)
	s.GPUs = board(1)
	s.GPUs.GPUs[0].Util = gpu.Read(100)
	expect(t, s.check("gpu_memory"), want{Fail, "gpu_ghost", "100 % with no process"})
	s.Blind = true
	expect(t, s.check("gpu_memory"), want{OK, "", "100 GiB free"})
}

func sparse(t *testing.T, path string, bytes int64) {
	t.Helper()
	if err := os.Truncate(path, bytes); err != nil {
		t.Fatal(err)
	}
}

func TestDriver(t *testing.T) {
	const version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (root@host)  Tue\nGCC version:  gcc version 12\n"
	s := server(t)
	expect(t, s.check("driver"))
	s.file("proc/driver/nvidia/version", version)
	expect(t, s.check("driver"), want{OK, "", "580.95.05; the library's version is not known"})
	install := func(v string, dir string) {
		s.file(dir+"/libnvidia-ml.so."+v, "")
		link := filepath.Join(s.root, dir, "libnvidia-ml.so.1")
		os.Remove(link)
		if err := os.Symlink("libnvidia-ml.so."+v, link); err != nil {
			t.Fatal(err)
		}
	}
	install("580.95.05", "usr/lib/x86_64-linux-gnu")
	expect(t, s.check("driver"), want{OK, "", "module and library are 580.95.05"})
	install("590.44.01", "usr/lib64")
	expect(t, s.check("driver"), want{Warn, "", "several versions"})
	install("590.44.01", "usr/lib/x86_64-linux-gnu")
	expect(t, s.check("driver"), want{Fail, "driver_mismatch", "module is 580.95.05, the installed library 590.44.01"})
	s.file("proc/driver/nvidia/version", "nonsense")
	expect(t, s.check("driver"))
}

func TestHostMemory(t *testing.T) {
	s := server(t, "--tp", "8", "--hicache-size", "100")
	expect(t, s.check("host_memory"))
	s.file("proc/meminfo", "MemTotal: 1 kB\nMemAvailable:  900000000 kB\n")
	expect(t, s.check("host_memory"), want{Warn, "", "8 ranks will pin 745 GiB of the 858 GiB"})
	s.file("proc/meminfo", "MemAvailable:  700000000 kB\n")
	expect(t, s.check("host_memory"), want{Fail, "host_memory", "will pin 745 GiB of host memory, 668 GiB"})
	s = server(t, "--tp", "8")
	s.file("proc/meminfo", "MemAvailable:  700000000 kB\n")
	expect(t, s.check("host_memory"), want{OK, "", "668 GiB available"})

	s.file("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"+
		"31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n")
	s.file("proc/self/cgroup", "0::/a/b\n")
	s.file("sys/fs/cgroup/a/memory.max", "34359738368\n")
	s.file("sys/fs/cgroup/a/memory.current", "34000000000\n")
	s.file("sys/fs/cgroup/a/memory.stat", "inactive_file 20000000000\nactive_file 10000000000\n")
	s.file("sys/fs/cgroup/a/b/memory.max", "max\n")
	s.file("sys/fs/cgroup/a/b/memory.current", "33000000000\n")
	expect(t, s.check("host_memory"), want{OK, "", "28.3 GiB available"})
	s.file("sys/fs/cgroup/a/memory.stat", "inactive_file 0\n")
	expect(t, s.check("host_memory"), want{Warn, "", "343 MiB of host memory available for 8 ranks"})

	s.file("proc/self/cgroup", "9:cpu,memory:/x\n0::/none\n")
	s.file("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n")
	s.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
	s.file("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "0\n")
	s.file("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "68719476736\n")
	expect(t, s.check("host_memory"), want{OK, "", "64.0 GiB available"})
}

func TestSharedMemory(t *testing.T) {
	s := server(t, "--tp", "2")
	expect(t, s.check("shared_memory"), want{Warn, "", "there is no /dev/shm"})
	s.file("dev/shm/nccl-abc", "")
	s.file("dev/shm/mine", "")
	sparse(t, filepath.Join(s.root, "dev/shm/nccl-abc"), 1<<30)
	sparse(t, filepath.Join(s.root, "dev/shm/mine"), 1<<30)
	got := s.check("shared_memory")
	expect(t, got[len(got)-1:], want{Warn, "", "1 files (1.0 GiB) in /dev/shm look left behind"})
}

func TestDisk(t *testing.T) {
	s := server(t)
	file := filepath.Join(s.Dir, "file")
	write(t, file, "")
	s.Env = append(s.Env, "TRITON_CACHE_DIR=/proc/self", "SGLANG_CACHE_DIR="+file+"/below")
	for _, c := range s.check("disk") {
		if c.Status == Fail {
			t.Errorf("a folder that cannot be written ends the launch: %+v", c)
		}
		if os.Getuid() != 0 && c.Status == OK {
			t.Errorf("/proc/self is called writable: %+v", c)
		}
	}
	if got := existing("/nonexistent/a/b"); got != "/" {
		t.Errorf("above a path that does not exist is %q", got)
	}
}

func TestProxy(t *testing.T) {
	for _, c := range []struct {
		env   string
		flags string
		wants []want
	}{
		{"", "", nil},
		{"HTTP_PROXY=http://p:1", "", []want{{Warn, "", "HTTP_PROXY is set and NO_PROXY does not hold 127.0.0.1"}}},
		{"http_proxy=http://p:1 no_proxy=localhost,127.0.0.1", "", []want{{OK, "", "goes around"}}},
		{"all_proxy=http://p:1 NO_PROXY=127.0.0.0/8", "", []want{{OK, "", "goes around"}}},
		{"http_proxy=http://p:1 NO_PROXY=*", "", []want{{OK, "", "goes around"}}},
		{"http_proxy=http://p:1 NO_PROXY=10.0.0.0/8", "--host 10.1.2.3", []want{{OK, "", "goes around"}}},
		{"http_proxy=http://p:1 NO_PROXY=.local", "--host node.local", []want{{OK, "", "goes around"}}},
		{"http_proxy=http://p:1 NO_PROXY=localhost", "--host ::", []want{{Warn, "", "does not hold ::1"}}},
		{"http_proxy=http://p:1", "--skip-server-warmup", nil},
		{"https_proxy=http://p:1", "", nil},
	} {
		s := server(t, strings.Fields(c.flags)...)
		s.Env = append(s.Env, strings.Fields(c.env)...)
		t.Run(c.env+c.flags, func(t *testing.T) { expect(t, s.check("proxy"), c.wants...) })
	}
}

func TestOutputAndSecrets(t *testing.T) {
	s := server(t, "--log-level", "WARNING", "--api-key", "secret")
	s.Env = append(s.Env, "TQDM_DISABLE=1")
	expect(t, s.check("output"), want{Warn, "", "no phases"}, want{Warn, "", "TQDM_DISABLE"})
	secrets := s.check("secrets")
	expect(t, secrets, want{Warn, "", "holds a secret"})
	if strings.Contains(show(secrets), "= secret") || strings.Contains(secrets[0].Found, "-key secret") {
		t.Errorf("the secret is told: %s", show(secrets))
	}
	expect(t, server(t).check("output"), want{OK, "", "will be printed"})
	expect(t, server(t).check("secrets"))
}

func TestLimits(t *testing.T) {
	for _, c := range server(t, "--enable-hierarchical-cache").check("limits") {
		if c.Status == Fail || c.Status == Warn && c.Advice == "" {
			t.Errorf("got %+v", c)
		}
	}
}

// A check that hangs is a warning, and holds up nothing.
func TestCheckThatHangs(t *testing.T) {
	let := make(chan struct{})
	defer close(let)
	hanging := checker{"x", false, func(context.Context, *look) []Check { <-let; return nil }}
	s := server(t)
	s.Limit = time.Millisecond
	got := hanging.within(context.Background(), newLook(s.Input, s.root))
	expect(t, got, want{Warn, "", "no answer within 1ms"})
	if got[0].Name != "x" || got[0].Took <= 0 {
		t.Errorf("got %+v", got[0])
	}
}

func TestRun(t *testing.T) {
	s := server(t, "--model-path", "/nonexistent", "--port", free(t))
	s.Argv[0] = "env"
	s.Argv = append([]string{"env", "true"}, s.Argv[1:]...) // no package to ask for
	s.GPUs = board(1)
	checks := Run(context.Background(), s.Input)
	var failed []string
	for _, c := range Failed(checks) {
		failed = append(failed, c.Name)
	}
	if len(checks) < 8 || strings.Join(failed, " ") != "model" {
		t.Errorf("got\n%s", show(checks))
	}
	sleep := Run(context.Background(), Input{Argv: []string{"sleep", "1"}, Dir: s.Dir, StateDir: s.Dir, Env: s.Env})
	if len(Failed(sleep)) > 0 || len(sleep) != 3 {
		t.Errorf("a command that is no server:\n%s", show(sleep))
	}
}

// The stand-in server is one that every check lets through, or warns about.
func TestStandInServerPasses(t *testing.T) {
	stage, err := rehearsal.Build(t.TempDir(), rehearsal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(free(t))
	if err != nil {
		t.Fatal(err)
	}
	s := server(t)
	s.Argv, s.Env, s.GPUs = stage.Command(stage.Args(2, number)...), append(s.Env, stage.Env()...), board(2)
	checks := Run(context.Background(), s.Input)
	if len(Failed(checks)) > 0 {
		t.Errorf("got\n%s", show(checks))
	}
	for _, c := range checks {
		if c.Name == "package" && c.Status != OK {
			t.Errorf("its package: %s", c.Found)
		}
	}
}

func TestSize(t *testing.T) {
	for bytes, text := range map[uint64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 80 << 30: "80.0 GiB", 183 << 30: "183 GiB", 1 << 60: "1048576 TiB"} {
		if got := size(bytes); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}
