"""A stand-in for SGLang: what it shows to the outside, and nothing behind it."""

from sglang.version import __version__

__all__ = ["__version__"]
