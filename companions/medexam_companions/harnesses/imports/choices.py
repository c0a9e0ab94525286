"""Questions with numbered options: which option each sample of a file chooses, and the prediction made of it."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from medexam import Question
from medexam.benchmarks import find_benchmark
from medexam.questions import ExamSet
from medexam.specs import DatasetSpec
from medexam_companions.harnesses.imports.account import ReadAnswers
from medexam_companions.harnesses.imports.answers import (
    ChoiceReader,
    Pair,
    as_worded,
    counts_from_zero,
    is_other_gold,
    make_prediction,
)
from medexam_companions.harnesses.imports.matching import MANY, Matcher, MatchReport
from medexam_companions.harnesses.imports.samples import HarnessSample, Results, ResultsError

MOST_UNMATCHED = 0.01
"""Share of a file's samples that may be of no question, unless the user says otherwise."""
MOST_UNREADABLE = 0.1
"""Share of the answers without a verdict that may name no option, unless more may be unmatched."""
_SHOWN = 3
"""Answers that a message repeats."""


class ChoiceForm:
    """Matches and reads samples of questions with numbered options."""

    def __init__(self, items: ExamSet, dataset: DatasetSpec, most_unmatched: float) -> None:
        self._most_unmatched = most_unmatched
        self._matcher = Matcher(items.questions, _as_published(items, dataset))

    def match(self, samples: Iterable[HarnessSample]) -> MatchReport:
        """Match each sample with its question."""
        return self._matcher.match(samples)

    def read(
        self,
        path: Path,
        results: Results,
        matched: MatchReport,
        items: ExamSet,
        program: str,
        spec_digest: str,
        may_be_key: bool,
    ) -> ReadAnswers:
        """Make the predictions of the matched questions, which `items` holds.

        Raises `ResultsError` if too many answers name no option, and if all are right and `may_be_key`.
        """
        pairs = self._pairs(matched, items)
        reader = ChoiceReader(pairs)
        self._check_answers(path, pairs, reader)
        predictions = [
            make_prediction(*pair, results, reader, program=program, spec_digest=spec_digest) for pair in pairs
        ]
        right = sum(items.golds[prediction.question].accepts(prediction.answer) for prediction in predictions)
        if may_be_key and right == len(pairs) >= MANY:
            raise ResultsError(
                f"{path}: all {len(pairs):,} answers are right, so the column answer may be the key: name the column "
                "of the model's answers, such as --measure prediction, or --measure answer if this is the one"
            )
        other_gold = sum(is_other_gold(reader.target(question), gold) for _, question, gold in pairs)
        return ReadAnswers(predictions, unreadable=len(reader.unreadable), other_gold=other_gold)

    def _pairs(self, matched: MatchReport, items: ExamSet) -> list[Pair]:
        """Pair each question of `items`, in the words of its sample, with that and our gold."""
        published = self._matcher.published
        return [
            (sample, as_worded(sample, question, published.get(question.key)), items.golds[question.key])
            for question in items.questions
            for sample in (matched.pairs[question.key],)
        ]

    def _check_answers(self, path: Path, pairs: Sequence[Pair], reader: ChoiceReader) -> None:
        """Raise `ResultsError` if too many answers cannot be read, and no verdict says how they came out.

        Numbers that may count from 0 are none: each would be taken for the option before the one that is meant.
        """
        if counts_from_zero(pairs):
            raise ResultsError(
                f"{path}: the answers seem to count from 0: one is 0, and none is the number of a last option. Write "
                "the printed numbers, from 1, or letters; leave unanswered questions empty"
            )
        answer_count = sum(sample.right is None for sample, _, _ in pairs)
        unreadable = [str(sample.choice) for sample in reader.unreadable if sample.right is None]
        if len(unreadable) <= max(self._most_unmatched, MOST_UNREADABLE) * answer_count:
            return
        examples = ", ".join(f"{text!r:.80}" for text in list(dict.fromkeys(unreadable))[:_SHOWN])
        raise ResultsError(
            f"{path}: {len(unreadable):,} of {answer_count:,} answers cannot be read, such as {examples}: write the "
            "printed number, the letter or the text of an option, or leave the answer empty; or --most-unmatched "
            f"{min(1.0, len(unreadable) / answer_count + 0.005):.2f} to count them as unanswered"
        )


def _as_published(items: ExamSet, dataset: DatasetSpec) -> list[Question]:
    """Load the questions of which we corrected characters, as their authors published them; usually none."""
    if not items.corrected:
        return []
    published = dataset.model_copy(update={"as_published": True})
    corrected = frozenset(items.corrected)
    return [question for question in find_benchmark(published).load(published).questions if question.key in corrected]
