package phases

import (
	"fmt"
	"testing"
)

// excerpts are pieces of outputs as people paste them: begin and end are missing.
var excerpts = []struct{ name, want, log string }{
	{"a batch of the overlap thread", "serving ready=false failed=true cause=scheduler_exception", `
[2025-02-04 21:18:29 TP3] TpModelWorkerClient hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/tp_worker_overlap_thread.py", line 109, in forward_thread_func
    self.forward_thread_func_()
  File "/x/sglang/srt/layers/foo.py", line 86, in forward
    a, b = x
ValueError: not enough values to unpack (expected 2, got 1)
`},
	{"another's header before Ray's, and one line of the server", "serving ready=false failed=true cause=scheduler_exception", `
[2025-02-04T21:18:29+08:00] job-3da56 >> (Engine pid=3111) [2025-02-04 13:18:29 TP7] Scheduler hit an exception: Traceback (most recent call last):
[2025-02-04T21:18:29+08:00] job-3da56 >> (Engine pid=3111)   File "/x/sglang/srt/managers/scheduler.py", line 989, in event_loop_normal
[2025-02-04T21:18:29+08:00] job-3da56 >> (Engine pid=3111)     result = self.run_batch(batch)
[2025-02-04T21:18:29+08:00] job-3da56 >> (Engine pid=3111) FooError: bar
`},
	{"nobody's prefix, and one line of the server", "serving ready=false failed=true cause=scheduler_exception", `
build	Run server	[2025-02-04 21:18:29 TP7] Scheduler hit an exception: Traceback (most recent call last):
build	Run server	  File "/x/sglang/srt/managers/scheduler.py", line 989, in event_loop_normal
build	Run server	    result = self.run_batch(batch)
build	Run server	FooError: bar
`},
	{"a relay's date and time, and a traceback", "weights_loaded ready=false failed=true cause=scheduler_exception", `
2025-02-05 05:18:28 [2025-02-04 21:18:28 TP7] Load weight end. type=FooForCausalLM, dtype=torch.bfloat16, avail mem=9.69 GB
2025-02-05 05:18:29 [2025-02-04 21:18:29 TP7] Scheduler hit an exception: Traceback (most recent call last):
2025-02-05 05:18:29   File "/x/sglang/srt/managers/foo.py", line 989, in bar
2025-02-05 05:18:29     result = self.run_batch(batch)
2025-02-05 05:18:29 FooError: bar
`},
	{"a traceback out of a JSON string", "serving ready=false failed=true cause=scheduler_exception", `
Scheduler hit an exception: Traceback (most recent call last):
  File \"/x/sglang/srt/managers/scheduler.py\", line 989, in event_loop_normal
    result = self.run_batch(batch)
FooError: bar
`},
	{"an attention backend that a start makes over its pool", "kv_cache ready=false failed=true cause=config_mismatch", `
  File "/x/sglang/srt/model_executor/model_runner.py", line 480, in initialize
    self.init_attention_backend()
  File "/x/sglang/srt/layers/attention/foo_backend.py", line 81, in __init__
    raise ValueError(page_size)
ValueError: 3
`},
	{"frames that two blanks were taken from", "loading_weights ready=false failed=true cause=unsupported_quantization", `
File "/x/sglang/srt/models/foo.py", line 344, in __init__
  self.experts = Experts(config)
File "/x/sglang/srt/layers/quantization/fp8.py", line 788, in __init__
  assert is_supported()
AssertionError
`},
	{"frames without any indentation, and a blank line behind each", "weights_loaded ready=false failed=true cause=config_mismatch", `
File "/x/sglang/srt/lora/mem_pool.py", line 58, in get_lora_A_shape

a, _ = get_hidden_dim(name, config, model)

^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

File "/x/sglang/srt/lora/utils.py", line 106, in get_hidden_dim

raise NotImplementedError()

NotImplementedError

[2025-02-04 21:18:29] Received sigquit from a child process. It usually means the child failed.
`},
	{"a message that a terminal broke behind its first sentence", "graph_capture ready=false failed=true cause=oom_graph_capture", `
Exception: Capture cuda graph failed: CUDA out of memory.
Tried to allocate 90.00 MiB.
GPU 0 has a total capacity of 79.11 GiB of which 80.75 MiB is free.
`},
	{"the output of mpirun", "starting ready=false failed=true cause=config_mismatch", `
[1,0]<stderr>:Traceback (most recent call last):
[1,1]<stderr>:Traceback (most recent call last):
[1,0]<stderr>:  File "/x/sglang/srt/server_args.py", line 460, in __post_init__
[1,1]<stderr>:  File "/x/sglang/srt/server_args.py", line 460, in __post_init__
[1,0]<stderr>:    assert self.foo > 1
[1,0]<stderr>:AssertionError: foo must be above 1
`},
	{"a replayed graph", "serving ready=false failed=true cause=scheduler_exception", `
  File "/x/sglang/srt/model_executor/cuda_graph_runner.py", line 500, in replay
    self.graphs[bs].replay()
RuntimeError: The foo has 15 arms, got 14
`},
	{"requests sent back to the queue", "serving ready=true failed=false cause=none", `
[2025-03-07 21:49:33 TP13] Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.1474 -> 0.1845
[2025-03-07 21:49:33 TP12] Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.1474 -> 0.1845
`},
	{"a client that went away", "serving ready=true failed=false cause=none", `
[2025-02-19 11:45:42 TP0] Prefill batch. #new-seq: 1, #new-token: 1, #cached-token: 0, cache hit rate: 0.00%, token usage: 0.00, #running-req: 0, #queue-req: 0
[2025-02-19 11:45:46] Abort request a96186a3d0f8424eb67e822d7cc66c57
Traceback (most recent call last):
  File "/usr/lib/python3.10/asyncio/tasks.py", line 456, in wait_for
    return fut.result()
asyncio.exceptions.CancelledError

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/sglang/srt/managers/tokenizer_manager.py", line 422, in _wait_one_response
    raise ValueError(f"Abort request {obj.rid}")
ValueError: Abort request a96186a3d0f8424eb67e822d7cc66c57
`},
	{"a wait that was cancelled first", "starting ready=false failed=true cause=scheduler_exception", `
Traceback (most recent call last):
  File "/usr/lib/python3.10/asyncio/tasks.py", line 456, in wait_for
    return fut.result()
asyncio.exceptions.CancelledError

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/sglang/srt/managers/tokenizer_manager.py", line 422, in start
    raise FooError("no foo")
FooError: no foo
`},
	{"lines as wide as the terminal", "loading_weights ready=false failed=true cause=unsupported_model", `
[2025-03-29 18:56:25 TP0] Scheduler hit an exception: Traceback (most recent call last):                 
  File "/x/sglang/srt/models/foo.py", line 520, in load_weights                                          
    weight_loader(param, loaded_weight)                                                                  
  File "/x/sglang/srt/layers/linear.py", line 642, in weight_loader                                      
    assert param_data.shape == loaded_weight.shape                                                       
AssertionError                                                                                           
                                                                                                         
[2025-03-29 18:56:25] Received sigquit from a child process. It usually means the child failed.          
Killed                                                                                                   
`},
	{"an assertion of a kernel and no exception", "serving ready=false failed=true cause=cuda_device_assert", `
/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1500: indexSelectSmallIndex: block: [32,0,0], thread: [63,0,0] Assertion ` + "`srcIndex < srcSelectDimSize`" + ` failed.
[2025-06-13 09:59:00] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 700, in event_loop_normal
    result = self.run_batch(batch)
`},
	{"C++ that gave up, and the end of its dump", "graph_capture ready=false failed=true cause=no_kernel_image", `
[2025-04-22 21:29:09 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=7.45 GB
:0:/x/src/clr/hipamd/src/hip_global.cpp:117 : 6190051732 us:  Cannot find Symbol with name: _ZN7ck_tile6kentryILi256ELi1E
Fatal Python error: Aborted

Extension modules: numpy.core._multiarray_umath, torch._C (total: 52)
`},
	{"attention in parallel, one rank that counts", "graph_capture ready=false failed=false cause=none", `
[2025-07-08 06:56:36 DP0 TP0] KV Cache is allocated. #tokens: 131072, KV size: 8.58 GB
[2025-07-08 06:56:36 DP1 TP1] KV Cache is allocated. #tokens: 131072, KV size: 8.58 GB
[2025-07-08 06:56:38 DP0 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=90.21 GB
Capturing batches (bs=448 avail_mem=87.41 GB):   8%|8         | 2/23 [00:20<03:30, 10.00s/it]
`},
	{"two servers behind one port, one that counts", "kv_cache ready=false failed=false cause=none", `
[2025-07-08 06:56:36 DP0 TP0] KV Cache is allocated. #tokens: 131072, KV size: 8.58 GB
[2025-07-08 06:56:36 DP1 TP0] KV Cache is allocated. #tokens: 131072, KV size: 8.58 GB
[2025-07-08 06:56:38 DP0 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=90.21 GB
Capturing batches (bs=448 avail_mem=87.41 GB):   8%|8         | 2/23 [00:20<03:30, 10.00s/it]
`},
	{"a request that could not be answered", "serving ready=true failed=false cause=none", `
[2025-06-11 06:19:30] INFO:     192.0.2.1:40106 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error
[2025-06-11 06:19:30] ERROR:    Exception in ASGI application
Traceback (most recent call last):
  File "/x/pydantic/main.py", line 253, in __init__
    validated_self = self.__pydantic_validator__.validate_python(data, self_instance=self)
pydantic_core._pydantic_core.ValidationError: 1 validation error for FooRequest
`},
	{"a server that killed itself after a child", "loading_weights ready=false failed=true cause=unknown", `
[2026-08-10 09:47:30 TP0] Load weight begin. avail mem=138.10 GB
[2026-08-10 09:47:31] Received sigquit from a child process. It usually means the child failed.
Killed
`},
	{"a server that somebody killed", "loading_weights ready=false failed=true cause=killed_oom", `
[2026-08-10 09:47:30 TP0] Load weight begin. avail mem=138.10 GB
command terminated with exit code 137
`},
	{"what a stranger sent to a port", "serving ready=false failed=true cause=scheduler_exception", `
[2025-04-21 22:11:12] TokenizerManager hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/tokenizer_manager.py", line 988, in handle_loop
    recv_obj = await self.recv_from_detokenizer.recv_pyobj()
_pickle.UnpicklingError: invalid load key, '\\x11'.
`},
	{"a kernel of an NPU", "starting ready=false failed=true cause=cuda_illegal_access", `
EZ9999: Inner Error!
       Kernel task happen error, retCode=0x31, [vector core exception].[FUNC:PreCheckTaskErr][FILE:davinci_kernel_task.cc][LINE:1539]
[2026-07-07 07:20:43] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`},
	{"a signal's stacks, of the thread that captures", "graph_capture ready=false failed=true cause=segfault", `
Fatal Python error: Segmentation fault

Current thread 0x00007f95ca716740 (most recent call first):
  File "/x/sglang/srt/distributed/device_communicators/pynccl_wrapper.py", line 373 in ncclAllReduce
  File "/x/sglang/srt/model_executor/cuda_graph_runner.py", line 380 in run_once
  File "/x/sglang/srt/model_executor/cuda_graph_runner.py", line 300 in capture
  File "/x/sglang/srt/managers/scheduler.py", line 1748 in run_scheduler_process
`},
	{"a signal's stacks, of the thread that serves", "serving ready=false failed=true cause=segfault", `
Fatal Python error: Segmentation fault

Thread 0x00007f95ca716740 (most recent call first):
  File "/usr/lib/python3.10/threading.py", line 324 in wait

Current thread 0x00007f95ca716741 (most recent call first):
  File "/x/sglang/srt/managers/scheduler.py", line 1330 in run_batch
  File "/x/sglang/srt/managers/scheduler.py", line 730 in event_loop_overlap
`},
	{"a request's error without words", "starting ready=false failed=false cause=none", `
[2025-07-15 23:47:06] Error in request: ` + `
Traceback (most recent call last):
  File "/x/sglang/srt/function_call/kimik2_detector.py", line 217, in structure_info
    raise NotImplementedError()
NotImplementedError
`},
	{"NCCL alone", "distributed_init ready=false failed=false cause=nccl_init_hang", `
node-1:276:276 [5] NCCL INFO threadThresholds 8/8/64 | 128/8/64 | 512 | 512
node-1:276:276 [5] NCCL INFO 2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 1 p2p channels per peer
`},
	{"what holds a start, alone", "distributed_init ready=false failed=false cause=nccl_init_hang", `
[Gloo] Rank 8 is NOT connected to: [1]
`},
	{"the probes of a server that is not ready", "warmup ready=false failed=false cause=none", `
[2026-01-04 07:53:49] INFO:     127.0.0.1:53546 - "GET /health HTTP/1.1" 503 Service Unavailable
[2026-01-04 07:53:59] INFO:     127.0.0.1:50266 - "GET /health HTTP/1.1" 503 Service Unavailable
`},
	{"the warm-up's own requests", "warmup ready=false failed=false cause=none", `
[2026-05-28 05:58:27] INFO:     127.0.0.1:50070 - "GET /model_info HTTP/1.1" 200 OK
[2026-05-28 05:58:29] Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0
[2026-05-28 05:58:29] INFO:     127.0.0.1:50078 - "POST /generate HTTP/1.1" 200 OK
`},
	{"what a client asks first", "serving ready=true failed=false cause=none", `
[2026-05-28 05:58:27] INFO:     127.0.0.1:50070 - "GET /model_info HTTP/1.1" 200 OK
[2026-05-28 05:58:29] INFO:     127.0.0.1:50078 - "POST /generate HTTP/1.1" 200 OK
[2026-05-28 05:58:30] INFO:     127.0.0.1:50080 - "POST /generate HTTP/1.1" 200 OK
`},
	{"a warm-up that fails", "warmup ready=false failed=true cause=scheduler_exception", `
[2026-05-28 05:58:27] INFO:     127.0.0.1:50070 - "GET /model_info HTTP/1.1" 200 OK
[2026-05-28 05:58:29 TP0] Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0
[2026-05-28 05:58:30 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 989, in event_loop_normal
    result = self.run_batch(batch)
FooError: bar
`},
	{"requests, answered", "serving ready=true failed=false cause=none", `
[2026-01-04 07:53:49] INFO:     192.0.2.7:53546 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error
[2026-01-04 07:53:59] INFO:     192.0.2.7:50266 - "POST /v1/chat/completions HTTP/1.1" 200 OK
`},
	{"a capture's bar, of releases that do not say so", "graph_capture ready=false failed=false cause=none", `
[2025-02-18 09:50:33 DP0 TP0] Using default MoE config. Performance might be sub-optimal!
 13%|#3        | 3/23 [00:02<00:14,  1.39it/s]
`},
	{"a request too long", "serving ready=true failed=false cause=none", `
[2025-03-03 06:49:28 TP5] Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a shorter input or enable --allow-auto-truncate.
`},
	{"a scheduler's last words", "kv_cache ready=false failed=false cause=none", `
[2026-05-28 05:58:25] max_total_num_tokens=20480, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=128, context_len=131072
[2026-05-28 05:58:25] Tree cache initialized: source=default impl=RadixCache hybrid_swa=False
`},
	{"lines broken by a narrow terminal", "kv_cache ready=false failed=false cause=none", `
[2026-02-19 05:55:02 DP3 TP3 EP3] Load weight end. elapsed=382.40 s, type=FooFor
CausalLM, quant=fp8, avail mem=29.67 GB, mem usage=80.31 GB.
[2026-02-19 05:55:03 DP3 TP3 EP3] KV Cache is allocated. dtype: torch.bfloat16, 
#tokens: 1226984, KV size: 9.21 GB
`},
	{"a package whose absence is found out by another exception", "starting ready=false failed=true cause=version_mismatch", `
importlib.metadata.PackageNotFoundError: No package metadata was found for flashinfer_python

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/sglang/srt/utils.py", line 691, in assert_pkg_version
    raise Exception(
Exception: flashinfer_python with minimum required version 0.2.5 is not installed. Please uninstall the old version and reinstall the latest version by following the instructions
`},
	{"what dies behind a bar", "graph_capture ready=false failed=true cause=segfault", `
[2025-07-08 06:56:38 DP0 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=90.21 GB
Capturing batches (bs=448 avail_mem=87.41 GB):   8%|8         | 4/51 [00:20<03:35,  4.59s/it]Fatal Python error: Segmentation fault

Thread 0x00007ee0b4dff640 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 359 in wait
`},
	{"a tuner in the way to the first graph", "autotune ready=false failed=true cause=scheduler_exception", `
[2026-07-15 04:07:05] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/model_executor/model_runner.py", line 938, in init_cuda_graphs
    self.eager_runner = EagerRunner(self)
  File "/x/sglang/srt/model_executor/runner/eager_runner.py", line 139, in warmup
    self._flashinfer_autotune(buffers=buffers)
FooError: bar
`},
	{"a traceback that ends with its frames", "graph_capture ready=false failed=true cause=scheduler_exception", `
[2026-07-15 04:07:05] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/model_executor/model_runner.py", line 938, in init_cuda_graphs
    self.eager_runner = EagerRunner(self)
`},
	{"a traceback that the next line cut", "graph_capture ready=false failed=true cause=scheduler_exception", `
[2026-07-15 04:07:05] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/model_executor/model_runner.py", line 938, in init_cuda_graphs
    self.eager_runner = EagerRunner(self)
[2026-07-15 04:07:05] kill_process_tree called: parent_pid=1457, include_parent=True, pid=1457
`},
	{"memory that C++ lacks, of no rank in particular", "graph_capture ready=false failed=true cause=oom_graph_capture", `
[2025-07-08 06:56:30] server_args=ServerArgs(model_path='/m', tp_size=2)
[2025-07-08 06:56:38 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=90.21 GB
[2025-07-08 06:56:38 TP1] Capture cuda graph begin. This can take up to several minutes. avail mem=90.21 GB
terminate called after throwing an instance of 'c10::OutOfMemoryError'
  what():  CUDA out of memory. Tried to allocate 2.00 GiB.
`},
	{"a traceback whose newest line comes first", "kv_cache ready=false failed=true cause=oom_kv_cache", `
[2025-04-04 06:24:51] Received sigquit from a child process. It usually means the child failed.
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.10 GiB.
  File "/x/sglang/srt/model_executor/model_runner.py", line 938, in init_memory_pool
[2025-04-04 06:24:51 TP1] Scheduler hit an exception: Traceback (most recent call last):
`},
	{"the same, and its head is cut off", "kv_cache ready=false failed=true cause=oom_kv_cache", `
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.10 GiB.
  File "/x/sglang/srt/model_executor/model_runner.py", line 938, in init_memory_pool
`},
	{"a weight file that the disk does not give", "loading_weights ready=false failed=true cause=corrupt_weights", `
[2025-05-07 14:42:43 TP0] Load weight begin. avail mem=46.93 GB
Loading safetensors checkpoint shards:   0% Completed | 0/17 [00:00<?, ?it/s]
Fatal Python error: Bus error

Current thread 0x000079795dbe4740 (most recent call first):
  File "/x/sglang/srt/model_loader/weight_utils.py", line 433 in safetensors_weights_iterator
`},
	{"the pools of a model with a file of its own", "kv_cache ready=false failed=true cause=config_mismatch", `
  File "/x/sglang/srt/model_executor/model_runner_kv_cache_mixin.py", line 308, in _init_pools
    self.token_to_kv_pool = FooTokenToKVPool(
  File "/x/sglang/srt/mem_cache/foo_memory_pool.py", line 144, in create_buffer
    assert self.store_dtype == torch.uint8
AssertionError
`},
	{"pools as they are sized from 0.5.16 on", "kv_cache ready=false failed=true cause=scheduler_exception", `
  File "/x/sglang/srt/mem_cache/kv_cache_configurator.py", line 308, in configure
    sizes = self.foo()
FooError: bar
`},
	{"a batch, and the loop is cut off", "serving ready=false failed=true cause=scheduler_exception", `
  File "/x/sglang/srt/managers/scheduler.py", line 2952, in _get_new_batch_prefill_raw
    if self.tp_worker.model_runner.foo:
AttributeError: 'FooModelRunner' object has no attribute 'foo'
`},
	{"an import of what makes batches", "starting ready=false failed=true cause=import_error", `
  File "/x/sglang/srt/managers/schedule_batch.py", line 50, in <module>
    import foo
ModuleNotFoundError: No module named 'foo'
`},
	{"the loader of a diffusion server", "loading_weights ready=false failed=true cause=scheduler_exception", `
Process sglang-diffusionWorker-0:
Traceback (most recent call last):
  File "/x/sglang/multimodal_gen/runtime/loader/transformer_load_utils.py", line 365, in resolve
    spec = foo()
FooError: bar
`},
	{"a network below the ranks that does not come up", "distributed_init ready=false failed=true cause=nccl_error", `
ibv_modify_qp failed 
/x/nvshmem/src/modules/transport/ibrc/ibrc.cpp:1433: non-zero status: 7 
NVSHMEM API called before NVSHMEM initialization has completed
`},
	{"an assertion of an Intel GPU's kernel", "serving ready=false failed=true cause=cuda_device_assert", `
/x/torch-xpu-ops/src/ATen/native/xpu/sycl/Foo.cpp:180: operator(): global id: [0,0,0], local id: [0,0,0] Assertion ` + "`foo != 0`" + ` failed.
[2026-06-13 09:59:00] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 700, in event_loop_normal
    result = self.run_batch(batch)
`},
	{"a device's error that NCCL's watchdog saw first", "graph_capture ready=false failed=true cause=scheduler_exception", `
[2026-04-29 03:11:40 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=98.40 GB
[rank0]:[E429 03:11:50.1 ProcessGroupNCCL.cpp:2057] [PG ID 2 PG GUID 3 Rank 0] Process group watchdog thread terminated with exception: HIP error: foo is not permitted
[2026-04-29 03:11:52] Exit code: -6
`},
	{"a signal's word from the shell, after a long wait", "distributed_init ready=false failed=true cause=segfault", `
[2026-12-26 15:34:31 TP8] Init torch distributed begin.
[W1226 15:44:31.548330712 TCPStore.cpp:358] [c10d] TCP client failed to connect/validate to host node-0:8000 - retrying (try=0, timeout=600000ms, delay=77116ms): The client socket has timed out after 600000ms while trying to connect to (node-0, 8000).
Segmentation fault (core dumped)
`},
	{"a build server's time in a quotation, and a bar that is drawn once more", "loading_weights ready=false failed=true cause=scheduler_exception", `
> [2025-11-06T02:10:00.702Z] FooError: bar
> 
> [2025-11-06T02:10:00.702Z] 
> [2025-11-06T02:10:00.703Z] Loading safetensors checkpoint shards:   0% Completed | 0/4 [00:00<?, ?it/s]
> [2025-11-06T02:10:00.703Z] [2025-11-06 02:10:00] Received sigquit from a child process. It usually means the child failed.
`},
	{"a traceback that is cut in the middle", "loading_weights ready=false failed=true cause=scheduler_exception", `
[2025-04-27 07:30:56 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 2001, in run_scheduler_process
    scheduler = Scheduler(server_args, port_args, gpu_id, tp_rank, dp_rank)
  File "/x/sglang/srt/model_executor/model_runner.py", line 191, in initialize
`},
	{"frames alone", "graph_capture ready=false failed=true cause=scheduler_exception", `
  File "/x/sglang/srt/model_executor/model_runner.py", line 2440, in init_device_graphs
    self.graph_runner = runners[self.device](self)
  File "/x/sglang/srt/foo.py", line 344, in __init__
`},
	{"a thread that somebody looked at", "graph_capture ready=false failed=false cause=none", `
Thread 0x00007f95ca716740 (most recent call first):
  File "/x/sglang/srt/model_executor/cuda_graph_runner.py", line 411 in capture
  File "/x/sglang/srt/model_executor/model_runner.py", line 191 in initialize
`},
	{"a request's traceback in which the output ends", "serving ready=true failed=false cause=none", `
[2026-06-09 03:35:23] ERROR:    Exception in ASGI application
Traceback (most recent call last):
  File "/x/sglang/srt/managers/tokenizer_manager.py", line 988, in handle_loop
`},
	{"a draft model's worker, cut", "weights_loaded ready=false failed=true cause=scheduler_exception", `
[2025-08-11 12:58:54 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 327, in __init__
    self.draft_worker = EAGLEWorker(
  File "/x/sglang/srt/speculative/eagle_worker.py", line 124, in __init__
`},
	{"a worker that failed, beside one that served", "ready ready=false failed=true cause=scheduler_exception", `
(Worker pid=5) [2025-07-01 13:15:04 TP0] Cache flushed successfully!
(Worker pid=7) [2025-07-01 13:15:06 TP1] Scheduler hit an exception: Traceback (most recent call last):
(Worker pid=7)   File "/x/sglang/srt/managers/scheduler.py", line 2311, in run_scheduler_process
(Worker pid=7)     scheduler.event_loop_overlap()
`},
	{"a code block of Markdown", "loading_weights ready=false failed=true cause=unsupported_model", `
    Traceback (most recent call last):
      File "/x/sglang/srt/model_executor/model_runner.py", line 849, in load_model
        self.model = get_model()
      File "/x/sglang/srt/models/foo.py", line 353, in load_weights
        param = params_dict[name]
    KeyError: 'foo'
`},
	{"a build's log as gh shows it", "loading_weights ready=false failed=true cause=unsupported_model", "\n" +
		"build\tRun server\t2026-02-19T05:52:10.1234567Z   File \"/x/sglang/srt/models/foo.py\", line 353, in load_weights\n" +
		"build\tRun server\t2026-02-19T05:52:10.1234567Z     param = params_dict[name]\n" +
		"build\tRun server\t2026-02-19T05:52:10.1234567Z KeyError: 'foo'\n"},
	{"cat -n", "loading_weights ready=false failed=true cause=unsupported_model", "\n" +
		"     9\t  File \"/x/sglang/srt/models/foo.py\", line 353, in load_weights\n" +
		"    10\t    param = params_dict[name]\n" +
		"    11\tKeyError: 'foo'\n"},
	{"a dump, its deepest frame first", "graph_capture ready=false failed=true cause=segfault", `
Fatal Python error: Segmentation fault

Current thread 0x00007f95ca716740 (most recent call first):
  File "/x/sglang/srt/model_executor/cuda_graph_runner.py", line 411 in capture
  File "/x/sglang/srt/model_executor/model_runner.py", line 191 in initialize
`},
	{"weights that a server loads while it serves", "serving ready=false failed=true cause=scheduler_exception", `
[2025-02-20 15:22:31 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 494, in event_loop_overlap
    self.process_input_requests(recv_reqs)
  File "/x/sglang/srt/models/foo.py", line 353, in load_weights
    param = params_dict[name]
FooError: bar
`},
	{"a request between two servers that failed", "serving ready=true failed=false cause=none", `
[2026-02-26 17:44:23] INFO:     192.0.2.7:58708 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error
[2026-02-26 17:44:23 TP0] Decode transfer failed for request rank=0 decode_req.req.rid='2b0f' with exception KVTransferError(bootstrap_room=68203): foo
`},
	{"the request that a server sends itself", "warmup ready=false failed=false cause=none", `
[2025-11-06 16:56:10] Receive: obj=GenerateReqInput(rid='6847fb46', text='The capital city of France is', input_ids=None)
[2025-11-06 16:56:10 TP0] Prefill batch. #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0
`},
	{"a store that is asked again", "distributed_init ready=false failed=false cause=nccl_init_hang", `
[2026-12-26 15:34:31 TP8] Init torch distributed begin.
[W1226 15:44:31.548330712 TCPStore.cpp:358] [c10d] TCP client failed to connect/validate to host node-0:8000 - retrying (try=0, timeout=600000ms, delay=77116ms): The client socket has timed out after 600000ms while trying to connect to (node-0, 8000).
`},
}

// TestExcerpts: a part of an output is understood as far as it goes.
func TestExcerpts(t *testing.T) {
	for _, e := range excerpts {
		r := explainBytes([]byte(e.log[1:]))
		cause := "none"
		if r.Cause != nil {
			cause = *r.Cause
		}
		got := fmt.Sprintf("%s ready=%t failed=%t cause=%s", r.Phase, r.Ready, r.Failed, cause)
		if got != e.want {
			t.Errorf("%s:\n got %s\nwant %s\nroot %+v", e.name, got, e.want, r.Root)
		}
	}
}
