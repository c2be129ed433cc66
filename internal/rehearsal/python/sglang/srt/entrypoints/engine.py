"""Start the processes of the server and wait until the schedulers are ready."""

import logging
import multiprocessing as mp
import os
import signal

from sglang.srt.managers.data_parallel_controller import run_data_parallel_controller_process
from sglang.srt.managers.detokenizer_manager import run_detokenizer_process
from sglang.srt.managers.scheduler import run_scheduler_process
from sglang.srt.model_loader.weight_utils import check_path
from sglang.srt.server_args import PortArgs
from sglang.srt.utils.common import at_least, configure_logger, kill_process_tree, no_core_dumps
from sglang_rehearsal import ipc, scaled

logger = logging.getLogger(__name__)


def _set_envs_and_config(server_args):
    os.environ["NCCL_CUMEM_ENABLE"] = "0"
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "8"
    os.environ.setdefault("SGLANG_RUN_ID", "sglang-run-%d" % os.getpid())
    no_core_dumps()

    def launch_phase_sigquit_handler(signum, frame):
        logger.error("Received sigquit from a child process. It usually means the child failed.")
        kill_process_tree(os.getpid())

    signal.signal(signal.SIGQUIT, launch_phase_sigquit_handler)
    mp.set_start_method("spawn", force=True)


def launch_subprocesses(server_args):
    """Returns the port arguments, the scheduler's info, and the child processes by name."""
    configure_logger(server_args)
    _set_envs_and_config(server_args)
    logger.info("server_args=%r", server_args)
    check_path(server_args.model_path)
    port_args = PortArgs(token=ipc.new_token())
    ipc.join(port_args.token)

    processes, readers = _launch_scheduler_processes(server_args, port_args)
    detokenizer = mp.Process(target=run_detokenizer_process, args=(server_args, port_args))
    detokenizer.start()
    logger.info("Using default HuggingFace chat template with detected content format: openai")

    info = _wait_for_schedulers_ready(processes, readers)
    names = {"scheduler_%d" % i: p for i, p in enumerate(processes)}
    names["detokenizer"] = detokenizer
    return port_args, info, names


def _launch_scheduler_processes(server_args, port_args):
    """One process a rank; with data parallelism one controller, whose children the ranks are.

    The writing ends belong to the children alone once this function is left,
    so the death of a child shows as the end of its pipe.
    """
    processes, readers = [], []
    if server_args.dp_size > 1:
        reader, writer = mp.Pipe(duplex=False)
        processes.append(mp.Process(target=run_data_parallel_controller_process, args=(server_args, port_args, writer)))
        processes[0].start()
        return processes, [reader]
    for tp_rank in range(server_args.tp_size):
        reader, writer = mp.Pipe(duplex=False)
        gpu_id = server_args.base_gpu_id + tp_rank * server_args.gpu_id_step
        proc = mp.Process(target=run_scheduler_process, args=(server_args, port_args, gpu_id, tp_rank, None, writer))
        proc.start()
        processes.append(proc)
        readers.append(reader)
    return processes, readers


def _wait_for_schedulers_ready(processes, readers):
    """Up to 0.5.9 this reads rank by rank: while an early one is late, the death
    of a later one goes unseen. From 0.5.10 all are looked after every 5 s."""
    infos = []
    for i, reader in enumerate(readers):
        if at_least(0, 5, 10):
            while not reader.poll(scaled(5)):
                _raise_if_died(processes)
        try:
            infos.append(reader.recv())
        except EOFError:
            if at_least(0, 5, 10):
                processes[i].join()
                _raise_if_died(processes)
            logger.error("Rank %d scheduler is dead. Please check if there are relevant logs.", i)
            processes[i].join()
            logger.error("Exit code: %d", processes[i].exitcode)
            raise
        if infos[-1]["status"] != "ready":
            raise RuntimeError("Initialization failed. Please see the error messages above.")
    return infos[0]


def _raise_if_died(processes):
    for i, proc in enumerate(processes):
        if proc.exitcode is not None:
            raise RuntimeError(
                "Rank %d scheduler died during initialization (exit code: %d). If exit code is -9 (SIGKILL), "
                "a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check." % (i, proc.exitcode))
