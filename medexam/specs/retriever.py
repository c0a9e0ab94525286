"""Which passages a program sees: the `retriever` part of a program's spec."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from medexam.specs.base import RETRIEVERS, Spec, part_of, short_name

RetrieverKind = Literal["medcpt", "dense", "bm25", "fusion"]


class RetrieverSpec(Spec):
    """How passages are found; `kind` alone swaps the method."""

    short_form = "kind"
    kind: Annotated[str, part_of(RETRIEVERS, RetrieverKind)] = "medcpt"
    """`medcpt`: the two MedCPT encoders (the paper's); `dense`: any sentence encoder; `bm25`: words; `fusion`: `bm25`
    and `dense` by reciprocal rank. Or a class of one's own, `./file.py:Name`, or the name of one that a package
    adds."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of a class of one's own; with a `corpus`, it gets `passages` too."""
    corpus: str | Path | None = None
    """A folder or file of passages, or a hub data set; None: `corpus/passages.jsonl.gz` in `$MEDEXAM_DATA`."""
    chunk_tokens: Annotated[int, Field(ge=1)] | None = None
    """Cut longer passages into chunks of this many tokens (words and punctuation marks); None leaves them whole."""
    chunk_overlap: Annotated[int, Field(ge=0)] = 0
    """Tokens that neighbouring chunks share."""
    index: Path | None = None
    """Folder of the vector index; None: one made on first use in the cache, by corpus and encoder."""
    encoder: str | Path | None = None
    """`medcpt`, `minilm`, a folder or a hub id; None: `medcpt` for kind `medcpt`, else `minilm`."""
    revision: str | None = None
    """Revision of a hub encoder; None takes the newest."""
    language: Literal["en", "es", "gl", "it", "ru"] = "en"
    """Language of the corpus, for BM25's stop words and stems."""
    rerank: str | Path | None = None
    """A cross-encoder that orders the best passages anew: `medcpt`, a folder or a hub id; None does not."""
    rerank_depth: Annotated[int, Field(ge=1)] = 32
    """How many passages the cross-encoder looks at."""
    fusion_constant: Annotated[int, Field(ge=1)] = 100
    """The constant of reciprocal-rank fusion (MedRAG's 100)."""

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        if self.chunk_overlap >= (self.chunk_tokens or 1):
            raise ValueError(f"chunk_overlap is {self.chunk_overlap}: give chunk_tokens, and a smaller overlap")
        return self

    @property
    def is_own(self) -> bool:
        """Whether `kind` is a class of the user's own, or one that an installed package adds."""
        return self.kind not in get_args(RetrieverKind)

    @property
    def uses_vectors(self) -> bool:
        """Whether an encoder's vectors are compared."""
        return self.kind in ("medcpt", "dense", "fusion")

    @property
    def uses_words(self) -> bool:
        """Whether words are compared."""
        return self.kind in ("bm25", "fusion")

    @property
    def encoder_name(self) -> str | Path:
        """The encoder that is meant, whether this kind has one or not."""
        return self.encoder or ("medcpt" if self.kind == "medcpt" else "minilm")

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        encoder = [Path(self.encoder).name] if self.encoder and self.uses_vectors else []
        chunks = [] if self.chunk_tokens is None else [f"chunks{self.chunk_tokens}"]
        return "-".join([short_name(self.kind), *encoder, *chunks, *([] if self.rerank is None else ["reranked"])])
