"""What was tried: each program with its score on the validation questions."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from medexam.distributions import rate_interval
from medexam.experiments.optimize.call_log import CallUsage
from medexam.predictions import Prediction
from medexam.programs import AskingProgram
from medexam.programs.loading import demonstrations
from medexam.programs.nearest import WithNearest
from medexam.questions import AnswerKey, Gold
from medexam.specs.names import short_name

WRONG_COSTS = 1 / 3
"""Right answers that a wrong one takes away, by the exam boards' rule."""
LEAST_SHARE = 1e-12
"""What an option's probability counts as when it rounds to nothing."""


@dataclass(frozen=True)
class Trial:
    """One program, asked every validation question."""

    number: int
    """0 is the program as it was written."""
    name: str
    """How it was made."""
    digest: str
    """Identity of its instructions and demonstrations."""
    demos: int
    """Demonstrations that its prompts show, over all predictors."""
    n: int
    right: int
    unanswered: int
    score: float
    """The optimizer's metric: of 1, or nats where that is a log-probability."""
    calls: int
    """Calls of the model for this trial alone, in all sessions together."""
    tokens: int
    answered_by: str | None = None
    """Print of the model that answered, a key of `models.json`; None before its first reply."""

    @property
    def accuracy(self) -> float:
        """Right answers of all, of 1."""
        return self.right / self.n

    @property
    def accuracy_interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy (Wilson)."""
        return rate_interval(self.right, self.n) or (0.0, 1.0)

    def to_json(self) -> dict[str, Any]:
        """Return the trial as data."""
        return {**asdict(self), "accuracy": self.accuracy, "accuracy_interval": list(self.accuracy_interval)}


def best_trial(trials: Sequence[Trial]) -> Trial:
    """Return the one with the highest score, of equal ones the first."""
    return min(trials, key=lambda trial: (-trial.score, trial.number))


def program_digest(program: AskingProgram) -> str:
    """Compute twelve hexadecimal digits over the instructions and demonstrations of a program."""
    words = {name: predictor.signature.instructions for name, predictor in program.named_predictors()}
    demos = [[name, _plain(demo)] for name, demo in demonstrations(program)]
    text = json.dumps([words, demos], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def score_prediction(prediction: Prediction, gold: Gold, metric: str) -> float:
    """Score one answer: 1 when right, 0 when left out; when wrong 0, or minus a third in an exam's score.

    By `log_probability`, the log of the right option's share of the options' probability, nats.
    """
    answer = prediction.answer
    if metric == "log_probability":
        shares = prediction.option_probabilities
        assert shares is not None  # noqa: S101 - such programs weigh
        return math.log(max(sum(share for number, share in shares.items() if gold.accepts(number)), LEAST_SHARE))
    if gold.accepts(answer):
        return 1.0
    return -WRONG_COSTS if metric == "exam_score" and answer is not None else 0.0


def metric_title(metric: str) -> str:
    """Return the head of a column of scores, with their unit; the name of a function of one's own has none."""
    if ":" in metric:
        return short_name(metric)
    return "log p, nats" if metric == "log_probability" else f"{metric.replace('_', ' ')} %"


def describe_score(score: float, metric: str) -> str:
    """Render a score under that head."""
    return f"{score:.3f}" if metric == "log_probability" or ":" in metric else f"{100 * score:.1f}"


def score_trial(
    number: int,
    name: str,
    digest: str,
    program: AskingProgram,
    predictions: Sequence[Prediction],
    *,
    key: AnswerKey,
    scores: Sequence[float],
    usage: CallUsage,
    answered_by: str | None,
) -> Trial:
    """Score a program with this digest by its `predictions` and their `scores`; `usage` is what its calls cost."""
    nearest = program.finder.k if isinstance(program, WithNearest) else None
    return Trial(
        number=number,
        name=name,
        digest=digest,
        demos=sum(len(predictor.demos) for predictor in program.predictors()) if nearest is None else nearest,
        n=len(predictions),
        right=sum(key[prediction.question].accepts(prediction.answer) for prediction in predictions),
        unanswered=sum(prediction.answer is None for prediction in predictions),
        score=sum(scores) / len(scores),
        calls=usage.calls,
        tokens=usage.tokens,
        answered_by=answered_by,
    )


def _plain(demo: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = to_jsonable_python(demo)
    return plain
