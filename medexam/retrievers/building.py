"""From the `retriever` part of a spec to a live retriever.

What a ranking depends on is known before anything heavy is opened, so that a run whose passages are known already opens
nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.retrievers.base import Retriever
from medexam.retrievers.corpora import Corpus, load_corpus
from medexam.retrievers.encoders import Encoder
from medexam.retrievers.index_manifest import MANIFEST, EncoderRecord, read_manifest
from medexam.specs import RetrieverSpec
from medexam.specs.identity import digest

Progress = Callable[[int], None]

_DENSE = ("medcpt", "dense")


@dataclass(frozen=True)
class PlannedRetriever:
    """A retriever that is not open yet."""

    spec: RetrieverSpec
    identity: dict[str, Any]
    """Everything that its rankings depend on, as JSON-ready data."""
    size: int
    """Passages of the corpus."""
    corpus: Corpus | None
    """None where an index stands for it."""

    def open(self, cache: Path, progress: Progress | None = None) -> Retriever:
        """Open it; an index that is not there yet is built in `cache`, which takes a while.

        `progress` is called with the number of passages that are encoded. Raises `EngineError` where an encoder cannot
        be loaded and `IndexStaleError` where an index does not fit.
        """
        retriever = self._open(cache, progress)
        if self.spec.rerank is None:
            return retriever
        from medexam.retrievers.reranking import RerankingRetriever

        return RerankingRetriever(retriever, self.spec.rerank, self.spec.rerank_depth, corpus_size=self.size)

    def _open(self, cache: Path, progress: Progress | None) -> Retriever:
        spec = self.spec
        if spec.kind in _DENSE:
            return self._open_dense(cache, progress)
        from medexam.retrievers.lexical import BM25Retriever, TfidfRetriever

        corpus = self._corpus()
        if spec.kind == "tfidf":
            return TfidfRetriever(corpus, spec.language)
        words = BM25Retriever(corpus, spec.language, cache / "lexical")
        if spec.kind == "bm25":
            return words
        from medexam.retrievers.fusion import FusionRetriever

        return FusionRetriever([words, self._open_dense(cache, progress)], corpus, constant=spec.fusion_constant)

    def _open_dense(self, cache: Path, progress: Progress | None) -> Retriever:
        from medexam.retrievers.encoders import build_encoder
        from medexam.retrievers.index_building import build_index
        from medexam.retrievers.index_search import open_index

        fingerprint = self.corpus.fingerprint if self.corpus else None
        if self.spec.index is not None:
            wanted = build_encoder(encoder_name(self.spec), self.spec.revision) if self.spec.encoder else None
            return open_index(self.spec.index, fingerprint, wanted)
        corpus = self._corpus()
        encoder = build_encoder(encoder_name(self.spec), self.spec.revision)
        folder = usual_index(corpus, encoder, cache)
        build_index(corpus, encoder, folder, progress=progress)
        return open_index(folder, corpus.fingerprint, encoder)

    def _corpus(self) -> Corpus:
        if self.corpus is None:
            raise SpecError(f"retriever.kind {self.spec.kind} needs the passages themselves: set retriever.corpus")
        return self.corpus


def plan_retriever(spec: RetrieverSpec) -> PlannedRetriever:
    """Find out what a retriever would search; raises `DatasetError` where its corpus cannot be read."""
    identity: dict[str, Any] = {"kind": spec.kind}
    corpus: Corpus | None = None
    if spec.kind in _DENSE and spec.index is not None and spec.corpus is None:
        if not (spec.index / MANIFEST).exists():
            raise SpecError(
                f"retriever.index: no finished index at {spec.index}; "
                f"make it with `medexam index build --encoder {encoder_name(spec)} --out {spec.index}`"
            )
        manifest = read_manifest(spec.index)
        identity["corpus"], size = manifest.corpus.fingerprint, manifest.corpus.count
        identity["index"] = manifest.digest
    else:
        corpus = load_corpus(spec.corpus)
        identity["corpus"], size = corpus.fingerprint, len(corpus.passages)
        if spec.kind != "bm25" and spec.kind != "tfidf":
            identity["encoder"], identity["revision"] = str(encoder_name(spec)), spec.revision
    if spec.kind not in _DENSE:
        identity["language"] = spec.language
    if spec.kind == "fusion":
        identity["constant"] = spec.fusion_constant
    if spec.rerank is not None:
        identity["rerank"], identity["rerank_depth"] = str(spec.rerank), spec.rerank_depth
    return PlannedRetriever(spec, identity, size, corpus)


def usual_index(corpus: Corpus, encoder: Encoder, cache: Path) -> Path:
    """Where the index of a corpus by an encoder lies when no other place is named."""
    known = digest(EncoderRecord.of(encoder).model_dump(exclude={"source"}))
    return cache / "indexes" / f"{corpus.name}-{corpus.fingerprint[:8]}-{Path(encoder.label).name}-{known[:8]}"


def encoder_name(spec: RetrieverSpec) -> str | Path:
    """The encoder that a spec means."""
    return spec.encoder or ("medcpt" if spec.kind == "medcpt" else "minilm")
