"""Encoders and retrievers: their weights, devices and passages."""

from medexam.encoder_weights import find_encoder_weights, loading, loading_options
from medexam.retrievers.building import PlannedRetriever, plan_retriever
from medexam.retrievers.corpora import corpus_texts
from medexam.retrievers.index_manifest import IndexManifest, read_manifest
from medexam.retrievers.index_search import DenseRetriever, open_index
from medexam.retrievers.languages import read_languages
from medexam.retrievers.reading.loading import LoadedReader, load_trainable
from medexam.retrievers.reading.spans import TransformersSpanReader
from medexam.retrievers.reading.windows import SHARED_TOKENS, WINDOW_TOKENS, Window, cut_windows

__all__ = [
    "SHARED_TOKENS",
    "WINDOW_TOKENS",
    "DenseRetriever",
    "IndexManifest",
    "LoadedReader",
    "PlannedRetriever",
    "TransformersSpanReader",
    "Window",
    "corpus_texts",
    "cut_windows",
    "find_encoder_weights",
    "load_trainable",
    "loading",
    "loading_options",
    "open_index",
    "plan_retriever",
    "read_languages",
    "read_manifest",
]
