package tune

// Class is what a failure is to the search: whom it blames, and how often the
// same launch is worth trying again.
type Class struct {
	Name        string
	Retries     int
	Cold        bool // the retry has empty caches of its own
	Environment bool // no trial's fault
	Hardware    bool // the machine needs a person: the night's trials end
	teaches     lesson
}

// lesson says about which other trials a failure tells something. Axes in
// orders may differ, to the side that is no better; those in none of the fields
// must be equal. The zero lesson teaches nothing.
type lesson struct {
	rule       string
	orders     map[string]int // of an axis: +1 = as much or more, -1 = as much or less
	categories []string       // equal values on axes of these are enough
	setting    bool           // the same value of the axis that is to blame is enough
}

// The classes of failures.
var (
	badArgument = Class{Name: "argument", teaches: lesson{rule: "same-argument", setting: true}}
	weightsFit  = Class{Name: "weights do not fit", teaches: lesson{rule: "dominated", orders: map[string]int{GPUsUp: -1, MemoryDown: -1}}}
	poolSmall   = Class{Name: "KV pool too small", teaches: lesson{rule: "dominated", orders: map[string]int{MemoryUp: -1}}}
	poolLarge   = Class{Name: "KV pool does not fit", teaches: lesson{rule: "dominated", orders: map[string]int{MemoryUp: +1, MemoryDown: -1}}}
	captureOOM  = Class{Name: "out of memory in graph capture", teaches: lesson{rule: "dominated", orders: map[string]int{MemoryUp: +1, MemoryDown: -1, GraphUp: +1}}}
	loadOOM     = Class{Name: "out of memory under load", Retries: 1, teaches: lesson{rule: "dominated", orders: map[string]int{MemoryUp: +1, MemoryDown: -1, LoadUp: +1}}}
	kernel      = Class{Name: "kernel", Retries: 1, Cold: true, teaches: lesson{rule: "same-backend", categories: []string{Backend}}}
	wrongOutput = Class{Name: "wrong output", teaches: lesson{rule: "same-backend", categories: []string{Backend, Quantization, KVType}}}
	patchFailed = Class{Name: "patch"}
	stall       = Class{Name: "stall", Retries: 1}
	slow        = Class{Name: "slow", Retries: 1}
	unexplained = Class{Name: "unexplained", Retries: 1}
	environment = Class{Name: "environment", Retries: 2, Environment: true}
	hardware    = Class{Name: "hardware", Environment: true, Hardware: true}
)

// classes tell the class of each cause of the vocabulary.
var classes = map[string]*Class{
	"bad_argument": &badArgument, "config_mismatch": &badArgument, "unsupported_model": &badArgument,
	"unsupported_quantization": &badArgument, "import_error": &badArgument, "version_mismatch": &badArgument,
	"needs_input": &badArgument,

	"oom_weights": &weightsFit, "mem_fraction_too_low": &poolSmall, "oom_kv_cache": &poolLarge,
	"oom_graph_capture": &captureOOM, "oom_runtime": &loadOOM,

	"jit_compile_failed": &kernel, "cache_corrupt": &kernel, "no_kernel_image": &kernel, "unsupported_arch": &kernel,
	"triton_resources": &kernel, "cuda_illegal_access": &kernel, "cuda_device_assert": &kernel,
	"autotune_hang": &kernel,

	"output_corrupt": &wrongOutput, "patch_failed": &patchFailed, "patch_ineffective": &patchFailed,

	"jit_compile": &slow, "jit_lock": &stall, "nccl_init_hang": &stall, "graph_capture_hang": &stall, "load_hang": &stall,
	"serving_hang": &stall, "nccl_timeout": &stall, "warmup_no_answer": &stall, "watchdog_timeout": &stall,

	"killed_oom": &environment, "host_memory": &environment, "shm_too_small": &environment, "port_in_use": &environment,
	"hf_auth": &environment, "hf_not_found": &environment, "hf_network": &environment, "model_path_missing": &environment,
	"corrupt_weights": &environment, "disk_full": &environment, "permission_denied": &environment, "slow_storage": &environment,
	"too_many_open_files": &environment, "host_stall": &environment, "killed_outside": &environment,
	"driver_mismatch": &environment, "no_gpu": &environment, "fabric_not_ready": &environment, "p2p_broken": &environment,

	"gpu_memory_held": &environment,

	"xid": &hardware, "gpu_lost": &hardware, "gpu_ghost": &hardware,
}

// ClassOf is the class of an end. A launch that was stopped as asked has none:
// ok is false.
func ClassOf(e Ended) (c Class, ok bool) {
	if e.Outcome == "stopped" && e.Cause == "" {
		return Class{}, false
	}
	class, known := classes[e.Cause]
	switch {
	case known && (e.Outcome != "refused" || class == &badArgument || class.Environment):
		return *class, true
	case e.Outcome == "refused": // preflight: a file, a port, a GPU
		return environment, true
	case e.Outcome == "hung":
		return stall, true
	case e.Outcome == "timed_out":
		return slow, true
	}
	return unexplained, true
}
