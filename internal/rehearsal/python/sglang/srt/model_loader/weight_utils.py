"""Reads the shards of a checkpoint."""

import os

from sglang.srt.utils.common import at_least
from sglang_rehearsal import cue, pause
from sglang_rehearsal.bar import Bar


def check_path(model_path):
    """A path that does not exist is taken for the name of a repository, which it can not be."""
    if model_path.startswith(("/", "./", "../")) and not os.path.isdir(model_path):
        kind = type("HFValidationError", (ValueError,), {"__module__": "huggingface_hub.errors"})
        raise kind("Repo id must be in the form 'repo_name' or 'namespace/repo_name': '%s'. Use `repo_type` argument "
                   "if needed." % model_path)


def shard_files(model_path):
    """The files of a local checkpoint; a hub name stands for one of 62."""
    if not os.path.isdir(model_path):
        return ["model-%05d-of-00062.safetensors" % i for i in range(1, 63)]
    names = sorted(n for n in os.listdir(model_path) if n.endswith(".safetensors"))
    if not names:
        raise RuntimeError("Cannot find any model weights with `%s`" % model_path)
    return [os.path.join(model_path, n) for n in names]


def safetensors_weights_iterator(files, rank, seconds):
    """Yields the shards over so many seconds. Only rank 0 draws a bar."""
    for i, name in enumerate(_with_bar(files) if rank == 0 else files):
        cue("shard", i / len(files))
        if os.path.exists(name):
            with open(name, "rb") as f:
                f.read()
        pause(seconds / len(files))
        yield name


def _with_bar(files):
    if at_least(0, 5, 10):
        return Bar(files, "Multi-thread loading shards", completed=True)
    return Bar(files, "Loading safetensors checkpoint shards", completed=True, end="\n")
