"""The server's arguments and the names of its ports."""

import ast

from sglang.srt.arg_defaults import ALIASES, CHOICES, DEFAULTS


def defaults():
    """(name, default) of every argument, in order."""
    for line in DEFAULTS.strip().splitlines():
        name, _, value = line.partition(" ")
        yield name, ast.literal_eval(value)


class ServerArgs:
    """One attribute for every argument. Its repr is the famous long line."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def __repr__(self):
        return "ServerArgs(%s)" % ", ".join("%s=%r" % item for item in self.__dict__.items())

    def ranks(self):
        """Schedulers on this node: with dp-attention the groups share their ranks."""
        return self.tp_size if self.enable_dp_attention else self.tp_size * self.dp_size

    def check(self):
        if min(self.tp_size, self.dp_size, self.gpu_id_step) < 1:
            raise ValueError("tp_size, dp_size and gpu_id_step must be at least 1")
        if self.enable_dp_attention and self.tp_size % self.dp_size:
            raise AssertionError("tp_size must be divisible by dp_size")
        if self.moe_runner_backend == "flashinfer_cutlass" and self.ep_size not in (1, self.tp_size):
            raise AssertionError("The expert parallel size must be 1 or the same as the tensor parallel size")
        allowed = ("modelopt_fp4", "modelopt_fp8", None)
        if self.moe_runner_backend == "flashinfer_cutlass" and self.quantization not in allowed:
            raise AssertionError("Invalid quantization '%s'. \nFlashInfer Cutlass MOE supports only: "
                                 "'modelopt_fp4', 'modelopt_fp8', or bf16 (None)." % self.quantization)


class PortArgs:
    """How the processes of one server find each other."""

    def __init__(self, token):
        self.token = token


def prepare_server_args(argv):
    """ServerArgs of a command line. argparse ends the process with status 2 if it is wrong."""
    import argparse

    from sglang_rehearsal import cue
    from sglang_rehearsal.scenario import count_start, tell_arguments

    if "--help" not in argv:
        count_start()
        cue("arguments")
    parser = argparse.ArgumentParser(prog="launch_server.py")
    for name, value in defaults():
        _add_argument(parser, name, value)
    args = ServerArgs(**vars(parser.parse_args(argv)))
    args.tokenizer_path = args.tokenizer_path or args.model_path
    args.served_model_name = args.served_model_name or args.model_path
    args.check()
    tell_arguments(args)
    return args


def _add_argument(parser, name, value):
    flags = ALIASES.get(name, ["--" + name.replace("_", "-")])
    if isinstance(value, bool):
        parser.add_argument(*flags, dest=name, action="store_true", default=value)
        return
    kind = type(value) if isinstance(value, (int, float)) else str
    if value is None and name.endswith(("_size", "_tokens", "_requests", "_timeout", "_port", "_steps", "_topk")):
        kind = int
    parser.add_argument(*flags, dest=name, type=kind, default=value, choices=CHOICES.get(name),
                        required=name == "model_path", nargs="*" if isinstance(value, list) else None)
