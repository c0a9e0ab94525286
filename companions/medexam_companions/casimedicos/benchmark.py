"""Extracted explanations: what became of each span, and how far it lies in the argument components of the document.

Goenaga et al. (2023) count empty, incomplete and exact predictions in table 13. Incomplete ones are too short to be an
answer, such as "correct)", "the" and "some" (their footnote 8): here, of one word. Whether words are those of a right
answer is told by SQuAD v1.1's rule.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from medexam import Prediction
from medexam.measures import Predictions, SpanBenchmark, comparable_words, group_tasks, scored_items
from medexam.questions import Task, TaskGold, TaskSet

OUTCOMES = ("exact", "empty", "incomplete", "partial", "too long", "elsewhere")
"""How a prediction stands to the right answer: its words in its order; no word; one word, an article too, that is not
the answer; some of its words; all of them and others; none of them."""
_NEAREST = ("exact", "empty", "incomplete", "too long", "partial", "elsewhere")
_WORD = re.compile(r"\w+")


class Explanations(SpanBenchmark):
    """Quoted explanations, beside right answers where the files hold them, and beside argument components."""

    def score_item(self, item: Task, gold: TaskGold, prediction: Prediction) -> dict[str, float]:
        """Score the words of the answer that lie in a component, among the answer's and among all that lie in one."""
        scores = super().score_item(item, gold, prediction)
        if not gold.components:
            return scores
        words = [match.span() for match in _WORD.finditer(item.context)]
        parts = [(component.start, component.end) for component in gold.components]
        gold_words = {word for word in words if any(start <= word[0] and word[1] <= end for start, end in parts)}
        start, end = prediction.span or (0, 0)
        answer_words = {word for word in words if start <= word[0] and word[1] <= end}
        overlap = len(answer_words & gold_words)
        components = {
            "component_f1": 2 * overlap / (len(answer_words) + len(gold_words)) if overlap else 0.0,
            "component_precision": overlap / len(answer_words) if overlap else 0.0,
            "component_recall": overlap / len(gold_words) if overlap else 0.0,
        }
        return scores | components if gold.answers else components | scores

    def subsets(self, items: TaskSet, predictions: Predictions) -> dict[str, list[Task]]:
        """Map the same names, and one to the questions that do not stand in the training split too."""
        fresh = [task for task in items.questions if not items.golds[task.key].repeats_training]
        parts = {"without questions that stand in train": fresh} if len(fresh) < len(items.questions) else {}
        return parts | super().subsets(items, predictions)

    def details(self, items: TaskSet, predictions: Predictions) -> dict[str, Any]:
        """Count by group also what became of each span that has a right answer."""
        details, spans = super().details(items, predictions), {}
        for group, tasks in group_tasks(items.questions).items():
            scored = [(task, items.golds[task.key].answers) for task in scored_items(tasks, predictions)]
            if pairs := [(predictions[task.key].text or "", answers) for task, answers in scored if answers]:
                spans[group] = count_outcomes(pairs)
        return details | {"tallies": details["tallies"] | ({"Extracted spans": spans} if spans else {})}


def count_outcomes(pairs: Iterable[tuple[str, Sequence[str]]]) -> dict[str, int]:
    """Count pairs of a prediction and its references by how it stands to the nearest; none is 0."""
    counts = Counter(
        min((_judge(prediction, comparable_words(reference)) for reference in references), key=_NEAREST.index)
        for prediction, references in pairs
    )
    return {outcome: counts[outcome] for outcome in OUTCOMES}


def _judge(prediction: str, reference_words: tuple[str, ...]) -> str:
    answer_words, count = comparable_words(prediction), len(_WORD.findall(prediction))
    if count == 0:
        return "empty"
    if answer_words == reference_words:
        return "exact"
    if count == 1 or not answer_words:
        return "incomplete"
    missing = Counter(reference_words) - Counter(answer_words)
    if missing.total() == len(reference_words) and reference_words:
        return "elsewhere"
    return "partial" if missing else "too long"
