"""Counts: how each question came out, and what the answers cost."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.predictions import Prediction, Status
from medexam.predictions.prediction import Answered
from medexam.questions import AnswerKey, Gold

RIGHT, WRONG, UNANSWERED, FAILED, MISSING = range(5)
"""How a question came out."""
Outcomes = NDArray[np.int8]
COUNTS = ("selected", "n", "right", "wrong", "unanswered", "failed", "missing")
"""Names of all that `count_outcomes` finds."""
TIMES = ("latency_p50_s", "latency_p95_s")
"""Names of the times that `count_costs` finds, in seconds; two runs of the same cell differ in nothing else."""
_TOKENS = ("prompt_tokens", "completion_tokens", "thinking_tokens")
COSTS = (*_TOKENS, *(f"{name}_counted" for name in _TOKENS[:2]), "reported_usd", *TIMES)
"""Names of all numbers of tokens and times that `count_costs` finds."""


def find_outcomes(keys: Sequence[str], key: AnswerKey, predictions: Mapping[str, Answered]) -> Outcomes:
    """Find how each question came out, in the order of `keys`; raises `DatasetError` if `key` lacks one."""
    outcomes = (find_outcome(key[question_key], predictions.get(question_key)) for question_key in keys)
    return np.fromiter(outcomes, np.int8, len(keys))


def find_outcome(gold: Gold, prediction: Answered | None) -> int:
    """Return how a question came out; None: it has no prediction."""
    if prediction is None:
        return MISSING
    status = prediction.status
    if status is Status.ANSWERED:
        return RIGHT if gold.accepts(prediction.answer) else WRONG
    return FAILED if status is Status.FAILED else UNANSWERED


def count_outcomes(outcomes: Outcomes) -> dict[str, int]:
    """Count the outcomes of some questions, as fields of `Scores`."""
    right, wrong, unanswered, failed, missing = np.bincount(outcomes, minlength=MISSING + 1).tolist()
    n = right + wrong + unanswered
    return dict(zip(COUNTS, (len(outcomes), n, right, wrong, unanswered, failed, missing), strict=True))


def count_costs(predictions: Iterable[Prediction]) -> dict[str, Any]:
    """Count each of `COSTS` over the predictions, None if none reports it; and those `without_passages`.

    `_counted` is the number of predictions that report tokens, None unless others with a reply do not. Failed
    predictions have no latency.
    """
    replies, without_passages = 0, 0
    columns: dict[str, list[float]] = {name: [] for name in (*_TOKENS, "reported_usd", "latency_s")}
    for prediction in predictions:
        is_scored = prediction.status is not Status.FAILED
        replies += prediction.last_call is not None
        without_passages += is_scored and prediction.passages == ()
        for name, column in columns.items():
            if (value := getattr(prediction, name)) is not None and (is_scored or name != "latency_s"):
                column.append(value)
    latencies = columns.pop("latency_s")
    costs: dict[str, Any] = {name: sum(column) if column else None for name, column in columns.items()}
    if len(columns["reported_usd"]) < replies:
        costs["reported_usd"] = None
    for name in _TOKENS[:2]:
        costs[f"{name}_counted"] = len(columns[name]) if 0 < len(columns[name]) < replies else None
    costs |= zip(TIMES, np.percentile(latencies, (50, 95)).tolist() if latencies else (None, None), strict=True)
    return costs | {"without_passages": without_passages}
