package phases

// catalogue holds every cause in the order of the vocabulary: by group, then
// roughly by how often people meet it.
var catalogue = []Cause{
	{"oom_weights", "memory", RetryNo, CureChange, "use more GPUs (--tp), quantised weights, or free the memory that other processes hold"},
	{"oom_kv_cache", "memory", RetryNo, CureChange, "lower --mem-fraction-static or --context-length so that the KV pool fits beside the rest"},
	{"oom_graph_capture", "memory", RetryNo, CureChange, "lower --mem-fraction-static or --cuda-graph-max-bs"},
	{"oom_runtime", "memory", RetryMaybe, CureChange, "lower --mem-fraction-static, --chunked-prefill-size or --max-running-requests"},
	{"mem_fraction_too_low", "memory", RetryNo, CureChange, "raise --mem-fraction-static, or use more GPUs: the weights leave nothing for the KV cache"},
	{"gpu_memory_held", "memory", RetryMaybe, CureWait, "another process holds memory of a GPU: end it, or wait until it ends"},
	{"killed_oom", "memory", RetryMaybe, CureChange, "the kernel or the container limit ended a process for want of host memory: raise the limit or lower MAX_JOBS and loader threads"},
	{"host_memory", "memory", RetryMaybe, CureChange, "free host memory: pinned buffers, page cache or swap are under pressure"},
	{"shm_too_small", "memory", RetryNo, CureChange, "give /dev/shm more room (--ipc=host or --shm-size) and remove stale /dev/shm/nccl-* files"},

	{"jit_compile_failed", "compile", RetryNo, CureChange, "read the compiler's first error line: usually the CUDA toolkit (CUDA_HOME), a header, ninja or the linker path is missing or too old"},
	{"jit_compile", "compile", RetryYes, CureRelaunch, "kernels are being compiled; keep the cache directories on a lasting disk so that the next start is fast"},
	{"jit_lock", "compile", RetryNo, CureChange, "a compile lock of a dead process blocks everybody: remove the lock file when no compiler runs"},
	{"cache_corrupt", "compile", RetryNo, CureChange, "delete the named compile or tuning cache; a retry alone reads the same broken file again"},
	{"no_kernel_image", "compile", RetryNo, CurePerson, "the installed kernels hold no code for this GPU: install the wheels built for it"},
	{"unsupported_arch", "compile", RetryNo, CureChange, "this backend does not run on this GPU: choose another --attention-backend or --moe-runner-backend, or a newer toolchain"},
	{"triton_resources", "compile", RetryNo, CureChange, "the kernel's tile needs more shared memory than this GPU has: choose another backend or kernel configuration"},
	{"cuda_illegal_access", "compile", RetryMaybe, CureRelaunch, "try once more; if it comes back, change the MoE or attention backend, or clear the autotune cache"},
	{"cuda_device_assert", "compile", RetryNo, CureChange, "an index or a value was out of range on the GPU: check model and tokenizer, then change the backend"},

	{"nccl_error", "communication", RetryMaybe, CureChange, "run once with NCCL_DEBUG=INFO; check NCCL_SOCKET_IFNAME, NCCL_IB_HCA and /dev/shm"},
	{"nccl_init_hang", "communication", RetryMaybe, CureChange, "the ranks do not reach each other: check --dist-init-addr, NCCL_SOCKET_IFNAME, the firewall and GPU peer-to-peer"},
	{"nccl_timeout", "communication", RetryYes, CureRelaunch, "one rank was late or stuck: look at the rank that does not report; --dist-timeout gives slow compiles more time"},
	{"peer_rank_failed", "communication", RetryMaybe, CureRelaunch, "the cause stands in the log of another rank or node; this output holds only its followers"},

	{"driver_mismatch", "hardware", RetryNo, CurePerson, "driver and CUDA libraries do not match: install a driver for this CUDA version, or reboot after an update"},
	{"no_gpu", "hardware", RetryNo, CurePerson, "no usable GPU is visible: check CUDA_VISIBLE_DEVICES, the container's GPU access and nvidia-smi"},
	{"xid", "hardware", RetryMaybe, CureRelaunch, "the driver reported a GPU fault (Xid): look the number up; if it comes back on the same GPU, replace or reset it"},
	{"gpu_lost", "hardware", RetryNo, CurePerson, "a GPU fell off the bus or has uncorrectable errors: drain the node, reset or replace the GPU"},
	{"gpu_ghost", "hardware", RetryNo, CurePerson, "memory or work of a process that is gone stays on a GPU: reset it, or reboot"},
	{"fabric_not_ready", "hardware", RetryMaybe, CureWait, "the NVSwitch fabric is not up: start nvidia-fabricmanager in the driver's version, then try again"},
	{"p2p_broken", "hardware", RetryNo, CureChange, "GPU peer-to-peer does not work: set NCCL_P2P_DISABLE=1 or turn ACS/IOMMU off"},
	{"host_stall", "hardware", RetryMaybe, CureWait, "the host itself stood still: look at its load, its disks and its kernel log"},

	{"hf_auth", "files", RetryNo, CurePerson, "the hub refused access: set HF_TOKEN of an account that has accepted the model's terms"},
	{"hf_not_found", "files", RetryNo, CurePerson, "the hub knows no such repository, revision or file: check the name, or set HF_TOKEN for a private one"},
	{"hf_network", "files", RetryYes, CureRelaunch, "the hub could not be reached: check network and proxy, or download beforehand and set HF_HUB_OFFLINE=1"},
	{"model_path_missing", "files", RetryNo, CurePerson, "the model's files are not where --model-path says: check the path, its mounts and its links"},
	{"corrupt_weights", "files", RetryNo, CureChange, "a weight file is damaged or only a pointer: download it again"},
	{"disk_full", "files", RetryNo, CureChange, "the disk is full: make room in the model and compile caches"},
	{"permission_denied", "files", RetryNo, CurePerson, "a file or directory may not be read or written: fix owner and mode, or point the caches elsewhere (SGLANG_CACHE_DIR)"},
	{"slow_storage", "files", RetryYes, CureRelaunch, "the weights come slowly: use local disks, or --weight-loader-prefetch-checkpoints"},

	{"bad_argument", "configuration", RetryNo, CurePerson, "this version does not accept the flag or its value: see --help of the installed version"},
	{"config_mismatch", "configuration", RetryNo, CureChange, "the settings do not fit each other or the model: follow the message, usually another --tp, backend or context length"},
	{"unsupported_model", "configuration", RetryNo, CurePerson, "this SGLang does not run this model in this way: upgrade, or choose another model, draft or backend"},
	{"unsupported_quantization", "configuration", RetryNo, CureChange, "this quantisation does not run here: choose another --quantization, MoE backend or checkpoint"},
	{"port_in_use", "configuration", RetryMaybe, CureWait, "another process holds the port: end it, or choose another --port"},
	{"needs_input", "configuration", RetryNo, CureChange, "the program waits for an answer: pass --trust-remote-code, or whatever it asks for"},

	{"import_error", "environment", RetryNo, CurePerson, "a package or shared library is missing or built for another version: repair the Python environment"},
	{"version_mismatch", "environment", RetryNo, CurePerson, "installed packages do not fit each other: install the versions that this SGLang release asks for"},
	{"too_many_open_files", "environment", RetryNo, CureChange, "raise the limit of open files (ulimit -n, LimitNOFILE=)"},

	{"segfault", "processes", RetryMaybe, CureRelaunch, "a process crashed in native code: try once more, then change the library or backend that the top frame names"},
	{"watchdog_timeout", "processes", RetryMaybe, CureRelaunch, "one batch took longer than --watchdog-timeout: see what it did; raise the limit for first-time compiles"},
	{"detokenizer_dead", "processes", RetryYes, CureRelaunch, "no answer came back from the detokenizer: usually the schedulers stopped sending; restart the whole tree"},
	{"zombie_server", "processes", RetryYes, CureRelaunch, "the HTTP process lives though a scheduler is dead: restart the whole tree"},
	{"orphaned_schedulers", "processes", RetryNo, CureChange, "schedulers of an earlier run still hold GPU memory: end them by process group, then start again"},
	{"warmup_no_answer", "processes", RetryMaybe, CureRelaunch, "the warm-up request was never answered: look at the schedulers, raise SGLANG_WARMUP_TIMEOUT for slow compiles"},
	{"warmup_unreachable", "processes", RetryNo, CureChange, "the server could not reach itself: exclude the loopback from the proxy (NO_PROXY=localhost,127.0.0.1)"},
	{"output_corrupt", "processes", RetryMaybe, CureChange, "the server answers, but wrongly: take back the last change of backend, patch or quantisation"},
	{"graph_capture_hang", "processes", RetryMaybe, CureChange, "the capture does not move: try --disable-custom-all-reduce or a smaller --cuda-graph-max-bs"},
	{"load_hang", "processes", RetryMaybe, CureRelaunch, "the weights do not arrive: try --weight-loader-prefetch-checkpoints or a single loader thread"},
	{"autotune_hang", "processes", RetryMaybe, CureChange, "the autotune does not move: --disable-flashinfer-autotune starts without it"},
	{"serving_hang", "processes", RetryYes, CureRelaunch, "the server no longer works on its requests: restart it, with a stack dump taken before"},
	{"killed_outside", "processes", RetryYes, CureRelaunch, "somebody or something ended the process with a signal: ask the node's owner or its job scheduler"},
	{"scheduler_exception", "processes", RetryMaybe, CureRelaunch, "an exception without a known cause: read its last line and search the project's issues for it"},

	{"patch_failed", "patch", RetryNo, CureChange, "the patched file does not even parse: take the patch back"},
	{"patch_ineffective", "patch", RetryNo, CureChange, "the patch changed nothing that the output shows: check backend and version"},

	{"unknown", "", RetryMaybe, CureRelaunch, "nothing in the output names the cause"},
}

var causeByName = func() map[string]Cause {
	byName := make(map[string]Cause, len(catalogue))
	for _, c := range catalogue {
		byName[c.Name] = c
	}
	return byName
}()

// Causes lists the catalogue of root causes. The slice is the caller's own.
func Causes() []Cause { return append([]Cause(nil), catalogue...) }

// LookupCause finds a cause by its name.
func LookupCause(name string) (Cause, bool) {
	c, ok := causeByName[name]
	return c, ok
}
