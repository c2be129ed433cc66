"""Kernels that are compiled when they are first needed."""

from flashinfer.jit.cpp_ext import run_ninja


class JitSpec:
    def __init__(self, name):
        self.name = name

    def build(self, verbose):
        run_ninja(None, self.name + "/build.ninja", verbose)

    def build_and_load(self):
        self.build(verbose=False)
        return self
