#!/usr/bin/env python3
"""Puts a load of a known kind on one NVIDIA GPU; for bench/gpu-check.sh.

It needs the driver and nothing else: no torch, no toolkit. It reads one word a
line from standard input, does that until the next word comes, and answers each
with a line once it has begun:

    allocate N   hold N MiB more
    traffic      write all of that memory, again and again
    spin         run a kernel that touches no memory, as a stuck collective does
    rest         do nothing
    quit         give everything back and end
"""

import ctypes
import select
import sys

SPIN = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 cycles)
{
    .reg .u64 %t<4>;
    .reg .pred %p;
    ld.param.u64 %t0, [cycles];
    mov.u64 %t1, %clock64;
again:
    mov.u64 %t2, %clock64;
    sub.u64 %t3, %t2, %t1;
    setp.lt.u64 %p, %t3, %t0;
    @%p bra again;
    ret;
}
"""
CYCLES = 200_000_000  # about a tenth of a second a launch


class Driver:
    """The few functions of libcuda that are needed; a failure ends the program."""

    def __init__(self):
        try:
            self.lib = ctypes.CDLL("libcuda.so.1")
        except OSError as e:
            sys.exit(f"cannot load the CUDA driver: {e}")

    def __getattr__(self, name):
        function = getattr(self.lib, name)

        def call(*args):
            code = function(*args)
            if code != 0:
                sys.exit(f"{name} answered {code}")

        return call


class Load:
    def __init__(self, cuda):
        self.cuda = cuda
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        cuda.cuInit(0)
        cuda.cuDeviceGet(ctypes.byref(device), 0)
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), device)
        cuda.cuCtxSetCurrent(self.context)
        module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        cuda.cuModuleLoadData(ctypes.byref(module), SPIN)
        cuda.cuModuleGetFunction(ctypes.byref(self.kernel), module, b"spin")
        self.blocks = []

    def allocate(self, mib):
        block = ctypes.c_uint64()
        self.cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(mib << 20))
        self.blocks.append((block, mib << 20))

    def traffic(self):
        for block, size in self.blocks:
            self.cuda.cuMemsetD8_v2(block, ctypes.c_ubyte(7), ctypes.c_size_t(size))
        self.cuda.cuCtxSynchronize()

    def spin(self):
        cycles = ctypes.c_uint64(CYCLES)
        parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(cycles), ctypes.c_void_p))
        self.cuda.cuLaunchKernel(self.kernel, 256, 1, 1, 64, 1, 1, 0, None, parameters, None)
        self.cuda.cuCtxSynchronize()


def main():
    load = Load(Driver())
    print("ready", flush=True)
    work = None
    while True:
        if work is not None and not select.select([sys.stdin], [], [], 0)[0]:
            work()
            continue
        words = sys.stdin.readline().split()
        if not words or words[0] == "quit":
            return
        if words[0] == "allocate":
            load.allocate(int(words[1]))
        work = {"traffic": load.traffic, "spin": load.spin}.get(words[0])
        print(words[0], flush=True)


main()
