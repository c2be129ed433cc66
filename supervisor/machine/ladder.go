package machine

import (
	"fmt"
	"slices"
	"strings"

	"sglaunch/phases"
)

// readyRungs are the rungs that [relaunch] fallbacks may name, in the order in
// which those of one name are tried. Flags and variables: SGLang v0.4 to v0.5.
var readyRungs = []Rung{
	// The pool is sized before the capture, so a smaller one leaves room for it.
	{Name: "graph-capture-oom", Causes: []string{"oom_graph_capture"}, Times: 2,
		Set: map[string]string{"--mem-fraction-static": "x0.93|0.8"}, Min: 0.5},
	{Name: "graph-capture-oom", Causes: []string{"oom_graph_capture"}, Times: 2,
		Set: map[string]string{"--cuda-graph-max-bs": "x0.5|64"}, Min: 1},
	{Name: "graph-capture-hang", Causes: []string{"graph_capture_hang"},
		Set: map[string]string{"--disable-custom-all-reduce": ""}},

	// Weights that do not fit can only move to host memory.
	{Name: "weights-oom", Causes: []string{"oom_weights"}, Times: 3,
		Set: map[string]string{"--cpu-offload-gb": "x2|8"}, Max: 64},
	{Name: "mem-fraction-too-low", Causes: []string{"mem_fraction_too_low"}, Times: 2,
		Set: map[string]string{"--mem-fraction-static": "x1.06|0.9"}, Max: 0.96},
	{Name: "kv-cache-oom", Causes: []string{"oom_kv_cache"}, Times: 2,
		Set: map[string]string{"--mem-fraction-static": "x0.93|0.8"}, Min: 0.5},
	{Name: "runtime-oom", Causes: []string{"oom_runtime"}, Times: 2,
		Set: map[string]string{"--mem-fraction-static": "x0.95|0.8", "--chunked-prefill-size": "x0.5|2048"}, Min: 0.5},

	// Triton runs wherever PyTorch does.
	{Name: "unsupported-backend", Causes: []string{"unsupported_arch", "triton_resources", "unsupported_quantization"},
		Set: map[string]string{"--moe-runner-backend": "triton"}, Text: []string{"moe", "gemm", "quant"}},
	{Name: "unsupported-backend", Causes: []string{"unsupported_arch", "triton_resources"},
		Set: map[string]string{"--attention-backend": "triton"}},
	{Name: "autotune-off", Causes: []string{"autotune_hang", "cuda_illegal_access", "oom_graph_capture", "oom_runtime", "jit_compile_failed"},
		Phases: []phases.Phase{phases.Autotune}, Set: map[string]string{"--disable-flashinfer-autotune": ""}},

	// xet-core issues 883 and 898: a download that stands still for ever.
	{Name: "xet-frozen", Causes: []string{"load_hang", "hf_network"}, Activity: "download",
		Env: map[string]string{"HF_HUB_DISABLE_XET": "1"}},
	// sglang issue 29268: a multi-threaded loader that locks itself up.
	{Name: "load-hang", Causes: []string{"load_hang"},
		Set: map[string]string{"--weight-loader-prefetch-checkpoints": ""}},
	// nccl issue 2079: the driver says that peer-to-peer works; writes vanish.
	{Name: "p2p-broken", Causes: []string{"p2p_broken", "nccl_init_hang"},
		Set: map[string]string{"--disable-custom-all-reduce": ""}, Env: map[string]string{"NCCL_P2P_DISABLE": "1"}},
	// sglang issue 27368: the scheduler ends with status 1 and no traceback.
	{Name: "numactl-refused", Text: []string{"numactl", "set_mempolicy", "numa_bind", "membind"},
		Env: map[string]string{"SGLANG_NUMA_BIND_V2": "0"}},
	coldCaches([]string{"jit_compile_failed", "cuda_illegal_access", "segfault"}, false),
}

// builtinRungs need no listing: they change nothing that the server shows.
var builtinRungs = []Rung{
	// A stale cache of kernels gives wrong answers too (vllm issue 41871).
	coldCaches([]string{"jit_lock", "cache_corrupt", "output_corrupt"}, false),
	// No lock was seen, but that is how waiting for one looks. A second hang
	// in the same place is worth a cold start in any case.
	coldCaches([]string{"autotune_hang", "graph_capture_hang", "warmup_no_answer"}, true),
}

// coldCaches gives the launch compile caches of its own. Locks and files of
// others are left alone: a filelock that is unlinked breaks its other users.
func coldCaches(causes []string, idle bool) Rung {
	return Rung{Name: "cold-jit-caches", Causes: causes, Idle: idle, Env: map[string]string{
		"FLASHINFER_WORKSPACE_BASE": Private + "/flashinfer",
		"TORCH_EXTENSIONS_DIR":      Private + "/torch_extensions",
		"TORCHINDUCTOR_CACHE_DIR":   Private + "/inductor",
		"TRITON_CACHE_DIR":          Private + "/triton",
		"SGLANG_DG_CACHE_DIR":       Private + "/deep_gemm",
	}}
}

// ReadyRungs returns the ready-made rungs of the given names, in the order of
// the names. An unknown name is refused with the known ones.
func ReadyRungs(names []string) ([]Rung, error) {
	var all []Rung
	for _, name := range names {
		before := len(all)
		for _, r := range readyRungs {
			if r.Name == name {
				all = append(all, r)
			}
		}
		if len(all) == before {
			return nil, fmt.Errorf("cannot use fallback %q: known are %s", name, strings.Join(RungNames(), ", "))
		}
	}
	return all, nil
}

// RungNames lists the names of the ready-made rungs, each once.
func RungNames() []string {
	var names []string
	for _, r := range readyRungs {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}
