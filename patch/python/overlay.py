"""Imports patched copies of a few modules in place of the installed files.

This folder is on PYTHONPATH for one launch of a server and its children; the
installed package stays as it is. overlay.json beside this file says which
modules. A sitecustomize that this one hides is run afterwards.
"""
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Loader(importlib.machinery.SourceFileLoader):
    """Takes the text from the copy and everything else from the original.

    __file__ stays the original's, for what lies beside it. Code objects name the
    copy: tracebacks and the source that inspect finds for a function, which JIT
    compilers read, are then the lines that really run.
    """

    def __init__(self, name, path, copy):
        super().__init__(name, path)
        self.copy = copy

    def get_data(self, path):
        return super().get_data(self.copy if path == self.path else path)

    def path_stats(self, path):
        # Without times there is no bytecode: that of the original does not fit,
        # and ours must not be left beside it.
        raise OSError("an overlay has no bytecode")

    def source_to_code(self, data, path, **kwargs):
        return super().source_to_code(data, self.copy, **kwargs)


class Finder:
    """Stands before the finders of the interpreter and asks them first."""

    def __init__(self, modules):
        self.sglaunch_overlay = modules

    def find_spec(self, name, path=None, target=None):
        entry = self.sglaunch_overlay.get(name)
        if entry is None:
            return None
        found = self.installed(name, path, target)
        if found is None or found.origin is None or os.path.realpath(found.origin) != os.path.realpath(entry["source"]):
            return None  # another copy of the package: not the one that was planned for
        self.check(name, entry)
        loader = Loader(name, found.origin, os.path.join(HERE, entry["copy"]))
        return importlib.util.spec_from_file_location(
            name, found.origin, loader=loader, submodule_search_locations=found.submodule_search_locations
        )

    def installed(self, name, path, target):
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                found = finder.find_spec(name, path, target)
                if found is not None:
                    return found
        return None

    def check(self, name, entry):
        with open(entry["source"], "rb") as f:
            found = hashlib.sha256(f.read()).hexdigest()
        if found not in entry["sha256"]:
            raise ImportError("sglaunch: %s has changed since the overlay of %s was made; launch again" % (entry["source"], name), name=name)


def install():
    with open(os.path.join(HERE, "overlay.json"), encoding="utf-8") as f:
        sys.meta_path.insert(0, Finder(json.load(f)))


def chain():
    rest = [p for p in sys.path if os.path.realpath(p or os.curdir) != os.path.realpath(HERE)]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


install()
chain()
