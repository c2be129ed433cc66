"""Lets the benchmark clients of a release run without its GPU stack.

Python imports this file before anything else. What the clients import besides
their own files, and do not need for a run, is a module in which every name is an
empty class; the tokenizer is one that takes words for tokens. The clients' own
files are those of the release.
"""

import importlib.abc
import importlib.machinery
import json
import os
import sys
import tempfile
import types

ABSENT = (
    "transformers", "torch", "datasets", "termplotlib", "huggingface_hub",
    "sglang.srt", "sglang.utils", "sglang.test", "sglang.profiler", "vllm",
)
REAL = ("sglang.test.bench_one_batch_server_internal", "vllm.benchmarks")


class Anything:
    def __init__(self, *args, **options):
        pass


class Module(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Anything,), {})


class Tokenizer:
    vocab_size = 32000
    chat_template = None
    bos_token_id = 1
    all_special_ids = ()
    init_kwargs = {}

    @classmethod
    def from_pretrained(cls, *args, **options):
        return cls()

    def get_vocab(self):
        return {str(i): i for i in range(self.vocab_size)}

    def num_special_tokens_to_add(self, *args, **options):
        return 0

    def encode(self, text, *args, **options):
        return [len(word) for word in text.split()]

    def decode(self, ids, *args, **options):
        return " ".join("w%d" % i for i in ids)

    def __call__(self, text, *args, **options):
        return types.SimpleNamespace(input_ids=self.encode(text))


class Address:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def to_url(self):
        return join(self.host, self.port)


def join(host, port, *args):
    return "http://%s:%s" % (host, port)


def server_args():
    """Of SGLang: bench_one_batch_server takes all of a server's arguments. Their
    class has been a dataclass and a msgspec struct; this one passes for both."""
    import dataclasses

    import msgspec

    class ServerArgs(msgspec.Struct):
        model_path: str = ""
        tokenizer_path: str = ""
        host: str = ""
        port: int = 0

        @staticmethod
        def add_cli_args(parser):
            parser.add_argument("--model-path", "--model")

        @classmethod
        def from_cli_args(cls, args):
            return cls(model_path=args.model_path)

        def resolve_once(self):
            pass

    fields = [(name, type(value), value) for name, value in msgspec.structs.asdict(ServerArgs()).items()]
    ServerArgs.__dataclass_fields__ = dataclasses.make_dataclass("Fields", fields).__dataclass_fields__
    return ServerArgs


def sharegpt(*args, **options):
    """The data set that a client would download."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False, dir=os.getcwd()) as file:
        json.dump([{"conversations": [{"value": "how many words are these"}, {"value": "five"}]}] * 50, file)
    return file.name


KNOWN = {
    "transformers": {name: Tokenizer for name in ("AutoTokenizer", "PreTrainedTokenizer", "PreTrainedTokenizerFast", "PreTrainedTokenizerBase")},
    "sglang.srt.utils": {"is_blackwell": lambda: False, "kill_process_tree": lambda *args: None, "is_in_ci": lambda: False},
    "sglang.srt.utils.network": {
        "NetworkAddress": Address,
        "resolve_base_url": lambda url=None, host=None, port=None, *rest, **options: url or join(host, port),
        "resolve_host_port": lambda host=None, port=None, *rest, **options: (host, port),
    },
    "huggingface_hub": {"hf_hub_download": sharegpt},
    "sglang.srt.arg_groups.overrides": {"resolving_view": lambda args: args},
    "sglang.test.test_utils": {"is_in_ci": lambda: False},
    "sglang.srt.disaggregation.utils": {"FAKE_BOOTSTRAP_HOST": "2.2.2.2"},
    "vllm.utils": {"join_host_port": lambda host, port: "%s:%s" % (host, port)},
    "vllm.utils.network_utils": {"join_host_port": lambda host, port: "%s:%s" % (host, port)},
    "vllm.utils.gc_utils": {"freeze_gc_heap": lambda: None},
}
TOKENIZER = {"get_tokenizer": lambda *args, **options: Tokenizer()}


class Offline(importlib.abc.Loader):
    """Runs a module's own file, then gives it what it would download."""

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        if hasattr(module, "download_and_cache_file"):
            module.download_and_cache_file = sharegpt


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        def below(names):
            return any(name == top or name.startswith(top + ".") for top in names)

        if name == "sglang.bench_serving":
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            if spec is not None:
                spec.loader = Offline(spec.loader)
            return spec
        if below(ABSENT) and not below(REAL):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        name = module.__name__
        if name in ("vllm", "sglang.test"):  # something below them is real
            module.__path__ = [entry + "/" + name.replace(".", "/") for entry in sys.path]
        for key, value in {**TOKENIZER, **KNOWN.get(name, {})}.items():
            setattr(module, key, value)
        if name == "sglang.srt.server_args":
            module.ServerArgs = server_args()
        if name == "vllm.logger":
            import logging

            module.init_logger = logging.getLogger
        if name.endswith("argparse_utils") or name == "vllm.utils":
            import argparse

            module.FlexibleArgumentParser = argparse.ArgumentParser


sys.meta_path.insert(0, Finder())
