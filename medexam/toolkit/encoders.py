"""Encoders and retrievers: their weights, devices and passages."""

from medexam.encoder_weights import EncoderWeights, find_encoder_weights, loading, loading_options, pick_encoder_device
from medexam.retrievers.base import LocalReader, Span
from medexam.retrievers.building import PlannedRetriever, plan_retriever
from medexam.retrievers.corpora import corpus_texts
from medexam.retrievers.index import DenseRetriever, IndexManifest, open_index, read_manifest
from medexam.retrievers.languages import read_languages

__all__ = [
    "DenseRetriever",
    "EncoderWeights",
    "IndexManifest",
    "LocalReader",
    "PlannedRetriever",
    "Span",
    "corpus_texts",
    "find_encoder_weights",
    "loading",
    "loading_options",
    "open_index",
    "pick_encoder_device",
    "plan_retriever",
    "read_languages",
    "read_manifest",
]
