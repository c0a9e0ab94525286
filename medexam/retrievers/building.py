"""From the `retriever` part of a spec to a live retriever.

What a ranking depends on is known before anything heavy is opened, so that a run whose passages are known already opens
nothing.
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from medexam.errors import IndexStaleError, SpecError
from medexam.plugins import hash_source, load_object
from medexam.questions import Language
from medexam.retrievers.base import Progress, Retriever
from medexam.retrievers.corpora import Corpus, load_corpus
from medexam.retrievers.encoders import MEDCPT, Encoder, build_encoder, find_encoder, is_medcpt_folder
from medexam.retrievers.index import SCHEMA, build_index, check_manifest, open_index, read_manifest, rebuild
from medexam.retrievers.lexical import WORDS_VERSION, BM25Retriever
from medexam.retrievers.reordering import FusionRetriever, RerankingRetriever, find_cross_encoder
from medexam.specs import RetrieverSpec
from medexam.specs.base import RETRIEVERS
from medexam.specs.identity import digest
from medexam.weights import MINILM

_NAMES: dict[str, str] = {
    "en": "English",
    "es": "Spanish",
    "gl": "Galician",
    "it": "Italian",
    "ru": "Russian",
    "fr": "French",
    "ja": "Japanese",
    "zh": "Chinese",
}
_WORDS_READ = get_args(RetrieverSpec.model_fields["language"].annotation)
"""The languages whose words BM25 knows."""


@dataclass(frozen=True)
class PlannedRetriever:
    """A retriever that is not open yet."""

    spec: RetrieverSpec
    identity: dict[str, Any]
    """Everything that its rankings depend on, as JSON-ready data."""
    corpus: Corpus | None
    """None if a retriever of the user's own has none; the one of an index that stands alone cannot be read."""
    encoder: str | Path
    """The encoder that is meant, whether this kind has one or not."""
    revision: str | None = None
    """What that encoder is, by content; None if the kind has none, or a named index tells."""
    rerank_revision: str | None = None
    """What the cross-encoder is, by content; None without one."""

    @property
    def size(self) -> int:
        """Passages of the corpus; without one, more than anybody asks for."""
        return sys.maxsize if self.corpus is None else self.corpus.count

    def check_depth(self, k: int) -> None:
        """Raise `SpecError` if `k` passages a query cannot be had."""
        if k > self.size:
            raise SpecError(
                f"program.k is {k}, and the corpus has {self.size:,} passages: ask for at most {self.size:,}, or name "
                "a larger corpus"
            )

    def warnings(self, language: Language) -> tuple[str, ...]:
        """Return what a reader of the results should know of this retriever and of queries in `language`.

        A vector of a text in a language that its encoder never saw is a vector all the same, so nothing fails. MedCPT
        and MiniLM read English; what other encoders read is not known here.
        """
        spec, name, messages = self.spec, _NAMES[language], []
        way_out = "set program.query_language: {0} to look up their {1} translations, or "
        if spec.uses_words and language != spec.language:
            other = _NAMES[spec.language]
            choice = f"retriever.language: {language} if the corpus is in {name}"
            messages.append(
                f"questions in {name} are looked up by their words in a corpus in {other} (retriever.language): "
                f"{way_out.format(spec.language, other)}{choice if language in _WORDS_READ else 'another retriever'}"
            )
        models = [self.encoder] * spec.uses_vectors + ([] if spec.rerank is None else [spec.rerank])
        messages += [
            f"questions in {name} are looked up by {Path(model).name}, which reads English only: "
            f"{way_out.format('en', 'English')}choose a model that reads {name}"
            for model in models
            if language != "en"
            and (str(model).startswith("ncbi/MedCPT") or model in (MEDCPT, MINILM) or is_medcpt_folder(model))
        ]
        return (*messages, *([] if self.corpus is None else self.corpus.warnings))

    def open(self, cache: Path, progress: Progress | None = None) -> Retriever:
        """Open it; an index that is not there yet is built in `cache`, which takes a while.

        Raises `EngineError` if an encoder cannot be loaded and `IndexStaleError` where an index does not fit.
        """
        retriever = self._open(cache, progress)
        if self.spec.rerank is None:
            return retriever
        depth = min(self.spec.rerank_depth, self.size)
        return RerankingRetriever(retriever, self.spec.rerank, depth, revision=self.rerank_revision)

    def _open(self, cache: Path, progress: Progress | None) -> Retriever:
        spec, corpus = self.spec, self.corpus
        if corpus is None or spec.is_own:
            return _build_own(spec, corpus)
        words = BM25Retriever(corpus, spec.language, cache / "lexical") if spec.uses_words else None
        if words is not None and not spec.uses_vectors:
            return words
        encoder = None if self.revision is None else build_encoder(self.encoder, self.revision)
        folder = spec.index
        if folder is None and encoder is not None:
            folder = usual_index(corpus, encoder, cache)
            build_index(corpus, encoder, folder, progress=progress)
        dense = open_index(folder or Path(), corpus.fingerprint, encoder)
        return dense if words is None else FusionRetriever([words, dense], corpus, constant=spec.fusion_constant)


def plan_retriever(spec: RetrieverSpec) -> PlannedRetriever:
    """Find out what a retriever would search, before anything heavy is opened.

    Models are identified by content: folders are read once, and the hub is asked for commits. Raises `DatasetError`
    where its corpus cannot be read, `EngineError` as `find_encoder`, and `IndexStaleError` where a named index is not
    finished, or is of another corpus or encoder.
    """
    encoder = spec.encoder_name
    load = partial(load_corpus, spec.corpus, chunk_tokens=spec.chunk_tokens, chunk_overlap=spec.chunk_overlap)
    if spec.is_own:
        own_corpus = None if spec.corpus is None else load()
        parts = {"kind": hash_source(spec.kind, RETRIEVERS), "args": spec.args}
        return PlannedRetriever(
            spec, parts if own_corpus is None else {**parts, "corpus": own_corpus.fingerprint}, own_corpus, encoder
        )
    folder = spec.index or Path()
    manifest = read_manifest(folder) if spec.index is not None and spec.uses_vectors else None
    if manifest is not None and not spec.uses_words and spec.corpus is None:
        if spec.chunk_tokens is not None:
            raise SpecError(
                "retriever.chunk_tokens applies to a corpus, and only retriever.index is set: set retriever.corpus as "
                "well, or leave it out"
            )
        corpus = manifest.corpus
    else:
        corpus = load()
    identity: dict[str, Any] = {"kind": spec.kind, "corpus": corpus.fingerprint}
    revision = rerank_revision = None
    if manifest is not None:
        identity["index"] = manifest.digest
        encoder = spec.encoder or manifest.encoder.source
        if spec.encoder is not None:
            revision = find_encoder(encoder, spec.revision).revision
        record = manifest.encoder
        check_manifest(manifest, folder, corpus.fingerprint, None)
        if revision not in (None, record.revision):
            raise IndexStaleError(
                f"{folder}: its vectors come from {record.label} {record.revision}, not {spec.encoder} {revision}; "
                f"correct retriever.encoder or retriever.revision, or leave them out; or {rebuild(folder)}"
            )
    elif spec.uses_vectors:
        identity["encoder"] = revision = find_encoder(encoder, spec.revision).revision
    if spec.uses_words:
        identity["language"], identity["words"] = spec.language, WORDS_VERSION
    if spec.kind == "fusion":
        identity["constant"] = spec.fusion_constant
    if spec.rerank is not None:
        weights, tokens = find_cross_encoder(spec.rerank)
        rerank_revision = weights.revision
        identity["rerank"], identity["rerank_depth"] = [rerank_revision, tokens], spec.rerank_depth
    return PlannedRetriever(spec, identity, corpus, encoder, revision, rerank_revision)


def _build_own(spec: RetrieverSpec, corpus: Corpus | None) -> Retriever:
    factory = load_object(spec.kind, RETRIEVERS)
    passages = {} if corpus is None else {"passages": corpus.passages}
    try:
        retriever: Retriever = factory(**spec.args, **passages)
    except Exception as error:
        raise SpecError(f"retriever {spec.kind}: making it failed: {type(error).__name__}: {error}") from error
    if not callable(getattr(retriever, "search", None)):
        raise SpecError(f"retriever {spec.kind} has no search(queries, k): see docs/your-own-parts.md")
    return retriever


def usual_index(corpus: Corpus, encoder: Encoder, cache: Path) -> Path:
    """Return where the index of a corpus by an encoder lies when no other place is named, whatever they are called."""
    return cache / "indexes" / f"{SCHEMA}-{corpus.fingerprint[:12]}-{digest(encoder.record.identity)}"
