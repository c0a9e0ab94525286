"""Encoders and retrievers: their weights, devices and passages."""

from medexam.encoder_weights import find_encoder_weights
from medexam.retrievers.reading.loading import LoadedReader, load_trainable
from medexam.retrievers.reading.spans import TransformersSpanReader
from medexam.retrievers.reading.windows import SHARED_TOKENS, WINDOW_TOKENS, Window, by_length, cut_windows

__all__ = [
    "SHARED_TOKENS",
    "WINDOW_TOKENS",
    "LoadedReader",
    "TransformersSpanReader",
    "Window",
    "by_length",
    "cut_windows",
    "find_encoder_weights",
    "load_trainable",
]
