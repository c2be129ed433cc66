package preflight

import (
	"context"
	"slices"
	"strings"

	"sglaunch/internal/gpu"
	"sglaunch/internal/proc"
)

// Return codes of NVML that say why there is no GPU to ask about.
const (
	driverNotLoaded = 9
	versionMismatch = 18
)

// wantsNVIDIA tells whether the server will run on NVIDIA GPUs, as far as the
// command says.
func (l *look) wantsNVIDIA() bool {
	return l.server.Device == "" || strings.HasPrefix(l.server.Device, "cuda")
}

// checkGPUs looks at whether the GPUs of the launch are there and fit.
func checkGPUs(_ context.Context, l *look) []Check {
	switch {
	case l.GPUs == nil || !l.wantsNVIDIA():
		return []Check{fine("not looked at")}
	case l.GPUs.Code == driverNotLoaded:
		return []Check{fail("no_gpu", "load the module: modprobe nvidia; in a container, see its runtime", "%s", l.GPUs.Err)}
	case l.GPUs.Code == versionMismatch:
		return []Check{fail("driver_mismatch", "reboot, or unload and load the nvidia modules: the driver was updated under the running one",
			"%s", l.GPUs.Err)}
	case l.GPUs.Err != "":
		return []Check{warn("run nvidia-smi and see", "the driver does not answer: %s", l.GPUs.Err)}
	case len(l.GPUs.GPUs) == 0:
		return []Check{fail("no_gpu", "in a container, pass the GPUs to it", "the driver shows no GPU")}
	}
	var checks []Check
	if l.note != "" {
		checks = append(checks, l.choice())
	}
	for _, g := range l.devices {
		checks = append(checks, unfit(g)...)
	}
	if len(checks) == 0 {
		checks = append(checks, fine("%d of %d GPUs, %s", len(l.devices), len(l.GPUs.GPUs), l.devices[0].Name))
	}
	return checks
}

// choice says what is odd about the choice of the GPUs. Fewer than the ranks
// need is certain to fail.
func (l *look) choice() Check {
	last := l.server.BaseGPU + (l.server.GPUs()-1)*l.server.GPUStep
	if len(l.Devices) == 0 && len(l.devices) <= last && len(l.GPUs.GPUs) > 0 {
		return fail("no_gpu", "correct --tp, --base-gpu-id or CUDA_VISIBLE_DEVICES", "%s", l.note)
	}
	return warn("", "%s", l.note)
}

// unfit says what speaks against a GPU.
func unfit(g gpu.GPU) []Check {
	var checks []Check
	trouble := g.Trouble()
	switch {
	case g.Lost:
		checks = append(checks, fail("gpu_lost", "reset it, or reboot; see the kernel log for its Xid", "GPU %d: %s", g.Index, trouble))
	case g.Fabric != "" && g.Fabric != gpu.FabricCompleted:
		checks = append(checks, fail("fabric_not_ready", "start nvidia-fabricmanager, or wait for it", "GPU %d: %s", g.Index, trouble))
	case g.RecoveryAction() != "":
		checks = append(checks, fail("gpu_lost", "do what it asks for; see the kernel log for the Xid behind it", "GPU %d: %s", g.Index, trouble))
	case trouble != "":
		checks = append(checks, warn("have it looked at", "GPU %d: %s", g.Index, trouble))
	}
	if g.Remapped.Pending {
		checks = append(checks, warn("reset it when convenient", "GPU %d has memory rows that wait for a reset to be remapped", g.Index))
	}
	if g.ECCUncorrected.Above(0) {
		checks = append(checks, warn("watch it: failing memory looks like a hang of the server",
			"GPU %d counts %d uncorrected memory errors since the driver was loaded", g.Index, g.ECCUncorrected.Value))
	}
	if reasons := g.ThrottleReasons(); slices.ContainsFunc(reasons, func(r string) bool { return r != "power cap" }) {
		checks = append(checks, warn("see to its cooling and power", "GPU %d is slowed down: %s", g.Index, strings.Join(reasons, ", ")))
	}
	return checks
}

// checkGPUMemory looks at who holds memory of the GPUs, and whether the weights
// fit into the rest.
func checkGPUMemory(_ context.Context, l *look) []Check {
	if len(l.devices) == 0 || !l.wantsNVIDIA() {
		return nil
	}
	var checks []Check
	need := l.weightsPerGPU()
	for _, g := range l.devices {
		if !g.MemoryKnown() {
			continue
		}
		switch {
		case need > g.Total:
			return []Check{fail("oom_weights", "use more GPUs (--tp, --pp), or a smaller or quantized checkpoint",
				"the weights alone take %s of each GPU, which has %s", size(need), size(g.Total))}
		case need > g.Free:
			checks = append(checks, l.taken(g, need))
		case g.SpinsAlone() && !l.Blind:
			checks = append(checks, fail("gpu_ghost", resetAdvice, "GPU %d is at %d %% with no process on it", g.Index, g.Util.Value))
		case g.Used > gpu.Idle:
			checks = append(checks, warn("the server takes what is free: both may fail later", "GPU %d: %s", g.Index, l.held(g)))
		}
	}
	if len(checks) == 0 {
		checks = append(checks, fine("%s free on each", size(leastFree(l.devices))))
	}
	return checks
}

const resetAdvice = "reset it (nvidia-smi --gpu-reset) or reboot: a process that is gone left it there"

// taken says why a GPU has not enough memory free. What processes hold comes
// back when they end; what nobody holds does not.
func (l *look) taken(g gpu.GPU, need uint64) Check {
	cause, advice := "gpu_memory_held", "end who holds it, or wait"
	if ghost := g.Unexplained(); ghost > gpu.Idle && need > g.Total-ghost && !l.Blind {
		cause, advice = "gpu_ghost", resetAdvice
	}
	return fail(cause, advice, "GPU %d has %s free, the weights alone take %s; %s", g.Index, size(g.Free), size(need), l.held(g))
}

// weightsPerGPU is what the weights take of each GPU at the least; 0 where that
// cannot be known, because they are changed or kept elsewhere while loading.
func (l *look) weightsPerGPU() uint64 {
	for _, flag := range []string{"--cpu-offload-gb", "--quantization", "--torchao-config", "--load-format", "--offload-group-size"} {
		if l.given(flag) {
			return 0
		}
	}
	if l.server.Model == "" {
		return 0
	}
	return l.weights().bytes / uint64(l.server.TP*l.server.PP)
}

func leastFree(gpus []gpu.GPU) uint64 {
	return slices.MinFunc(gpus, func(a, b gpu.GPU) int { return int(int64(a.Free) - int64(b.Free)) }).Free
}

// held says who holds memory of a GPU.
func (l *look) held(g gpu.GPU) string { return Held(g.Used, g.Processes, l.Blind) }

// Held says that so many bytes of a GPU are in use, and by whom. Of a blind
// list (see Input) no pid means anything here.
func Held(used uint64, holders []gpu.Process, blind bool) string {
	if blind {
		return size(used) + " held outside of this container"
	}
	var parts []string
	for _, p := range holders {
		text := proc.Who(p.PID)
		if p.Bytes.Known {
			text = size(uint64(p.Bytes.Value)) + " by " + text
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return size(used) + " held by nobody who shows himself"
	}
	return size(used) + " held: " + list(parts)
}
