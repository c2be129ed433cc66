"""The memory of one GPU, as this process and the NVML library see it.

Every process keeps one note in BOARD.d: which process it is (pid and start
time), which GPU, how many bytes, how busy. Nobody else writes that note, so no
lock is needed; a note whose process is gone does not count. Sizes are GiB,
which SGLang prints as GB.
"""

import os

GIB = 1 << 30

_index = 0
_held = 0  # bytes
_busy = {"util": 0, "memutil": 0, "power": 0}


class OutOfMemoryError(RuntimeError):
    """Shown with the name of torch's, as the next one."""


class AcceleratorError(RuntimeError):
    pass


OutOfMemoryError.__module__ = AcceleratorError.__module__ = "torch"


def use(index):
    """Choose the GPU of this process, through CUDA_VISIBLE_DEVICES if that is set."""
    global _index
    board = _board()
    visible = [v for v in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if v.strip().isdigit()]
    if visible and index >= len(visible) or "gpus" in board and index >= board["gpus"]:
        raise error("CUDA error: invalid device ordinal")
    _index = int(visible[index]) if visible else index
    if board["%d.code" % _index]:
        raise error("CUDA error: unknown error")


def index():
    return _index


def allocate(gib):
    """Hold so much more (less, if negative). Out of memory is an exception."""
    global _held
    if gib > 0 and gib > available():
        raise out_of_memory(gib)
    _held = max(0, _held + int(gib * GIB))
    note()


def available(of=None):
    """Free GiB of a GPU, this process's if not told."""
    of = _index if of is None else of
    board = _board()
    taken = sum(n["bytes"] for n in _notes() if n["gpu"] == of)
    if not _path() and of == _index:
        taken = _held
    taken += sum(board["%d.procs" % of].values())
    idle = (board["%d.total" % of] - board["%d.reserved" % of] - board["%d.used" % of])
    return max(0.0, (idle - taken) / GIB)


def total():
    return _board()["%d.total" % _index] / GIB


def held():
    return _held / GIB


def error(text):
    """An error of the CUDA runtime, in torch's words."""
    return AcceleratorError(
        text + "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
        "might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with "
        "`TORCH_USE_CUDA_DSA` to enable device-side assertions.\n")


def lose():
    """This process's GPU falls off the bus: an Xid, and no answer from now on."""
    if not _path():
        return
    with open(_path() + ".events", "a", encoding="ascii") as f:
        f.write("%d 8 79\n" % _index)
    with open(_path(), encoding="utf-8") as f:
        board = f.read()
    with open(_path() + ".new", "w", encoding="utf-8") as f:
        f.write("%s%d.code 15\n" % (board, _index))
    os.replace(_path() + ".new", _path())


def out_of_memory(gib):
    """The exception, in torch's words."""
    return OutOfMemoryError(
        "CUDA out of memory. Tried to allocate %.2f GiB. GPU %d has a total capacity of %.2f GiB of which %.2f MiB "
        "is free. Including non-PyTorch memory, this process has %.2f GiB memory in use. Of the allocated memory "
        "%.2f GiB is allocated by PyTorch, with 6.10 GiB allocated in private pools (e.g., CUDA Graphs), and "
        "318.07 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
        "Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
        % (gib, _index, total(), available() * 1024, held(), max(0.0, held() - 1.7)))


def note(util=None, memutil=None, power=None):
    """Write down what this process holds, and how busy it keeps its GPU."""
    for key, value in (("util", util), ("memutil", memutil), ("power", power)):
        if value is not None:
            _busy[key] = value
    if not _path():
        return
    line = "%d %d %d %d %d %d\n" % (_start_time(), _index, _held, _busy["util"], _busy["memutil"], _busy["power"])
    target = os.path.join(_path() + ".d", str(os.getpid()))
    try:
        with open(target + ".new", "w", encoding="ascii") as f:
            f.write(line)
        os.replace(target + ".new", target)
    except OSError:
        pass  # the board is gone: the rehearsal is being cleared away


def _path():
    return os.environ.get("SGLAUNCH_REHEARSAL_NVML", "")


class _Lines(dict):
    """The board's lines; a figure that it does not give is 0, or a default GPU's."""

    def __missing__(self, key):
        if key.endswith(".procs"):
            return {}
        return 183359 << 20 if key.endswith(".total") else 0


_read = (None, _Lines())  # which file was read last, and what it said


def _board():
    """The board, read again when it is another file: it is replaced, never rewritten."""
    global _read
    try:
        stat = os.stat(_path())
        if _read[0] != (stat.st_ino, stat.st_mtime_ns):
            with open(_path(), encoding="utf-8") as f:
                _read = (stat.st_ino, stat.st_mtime_ns), _parse(f)
        return _read[1]
    except OSError:
        return _Lines()


def _parse(lines):
    board = _Lines()
    for line in lines:
        key, _, value = line.rstrip("\n").partition(" ")
        if key.endswith(".procs"):
            board[key] = {int(pid): int(size) for pid, _, size in (p.partition(":") for p in value.split(","))}
        elif value.isdigit():
            board[key] = int(value)
    return board


def _notes():
    """The notes of processes that live. The NVML library reads them the same way."""
    try:
        names = os.listdir(_path() + ".d")
    except OSError:
        return
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(os.path.join(_path() + ".d", name), encoding="ascii") as f:
                start, gpu, size = [int(v) for v in f.read().split()[:3]]
        except (OSError, ValueError):
            continue
        if start == _start_time(int(name)):
            yield {"pid": int(name), "gpu": gpu, "bytes": size}


def _start_time(pid=None):
    """Field 22 of /proc/PID/stat; -1 for a process that is gone or a zombie."""
    try:
        with open("/proc/%s/stat" % (pid or "self"), "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
    except OSError:
        return -1
    return -1 if fields[0] in (b"Z", b"X") else int(fields[19])
