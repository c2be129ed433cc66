"""A stand-in for FlashInfer: the frames and lines of its autotuner and its JIT."""

__version__ = "0.6.3"
