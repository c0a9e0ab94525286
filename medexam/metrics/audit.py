"""The answer that a benchmark gives people to judge."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medexam.predictions import Prediction


@dataclass(frozen=True, slots=True)
class AuditItem:
    """One answer that people are to judge."""

    key: str
    """The question's key, unique within a run."""
    run: str
    """The run's id; never shown to a rater."""
    group: str
    """What the question belongs to: a format, such as `short`, or a discipline."""
    question: str
    """As shown to the rater."""
    reference: str
    """The right answer or answers, as shown to the rater."""
    reply: str
    """The model's answer, as shown to the rater."""
    scores: Mapping[str, float]
    """Automatic measure -> finite score of this answer, the higher the better; a measure may lack answers."""


def answer_digest(prediction: Prediction, expected: Any) -> str:
    """Hash what a model answered and what was expected, JSON-ready, into eight hexadecimal digits.

    A page gives it to each mark, and the import of marks compares it with the run.
    """
    words = json.dumps([prediction.reply, prediction.text, prediction.answer, expected])
    return hashlib.sha256(words.encode()).hexdigest()[:8]
