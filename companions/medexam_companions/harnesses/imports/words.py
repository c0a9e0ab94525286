"""Questions that are answered in words: the predictions that samples stand for."""

from collections.abc import Mapping
from typing import Any

from medexam import Prediction
from medexam.predictions import Reason, Status
from medexam.questions import TaskGold, TaskSet
from medexam_companions.harnesses.imports.choices import told_fields
from medexam_companions.harnesses.imports.matching import loose
from medexam_companions.harnesses.imports.samples import HarnessSample, Results


def read_words(
    results: Results, pairs: Mapping[str, tuple[HarnessSample, Any]], items: TaskSet, fields: Mapping[str, Any]
) -> tuple[list[Prediction], int, int]:
    """Make the predictions of the matched questions, as `read_choices` does; no answer in words is unreadable."""
    samples = {task.key: pairs[task.key][0] for task in items.questions}
    predictions = [_make_prediction(key, sample, results, fields) for key, sample in samples.items()]
    return predictions, 0, sum(_is_other(sample, items.golds[key]) for key, sample in samples.items())


def is_expected(text: str | None, gold: TaskGold) -> bool:
    """Return whether an answer is the text that our data expect."""
    return loose(text or "") in {*map(loose, gold.answers), loose(" ".join(gold.answers))}


def _is_other(sample: HarnessSample, gold: TaskGold) -> bool:
    """Return whether what the file expects holds none of what our data expect; False if either says nothing."""
    if not isinstance(sample.target, str):
        return False
    ours = [*gold.answers, gold.incorrect_explanation, *gold.incorrect_step]
    theirs = loose(sample.target)
    return any(ours) and not all(loose(text) in theirs for text in ours)


def _make_prediction(key: str, sample: HarnessSample, results: Results, shared: Mapping[str, Any]) -> Prediction:
    """Build the prediction that a sample stands for: its answer in words, else its whole reply."""
    text = sample.choice if isinstance(sample.choice, str) else sample.reply
    fields = {**shared, **told_fields(key, sample, text if sample.reply is None else sample.reply, results.model)}
    if text is None or not text.strip():
        return Prediction(**fields, status=Status.UNANSWERED, reason=Reason.EMPTY)
    return Prediction(**fields, status=Status.ANSWERED, text=text.strip())
