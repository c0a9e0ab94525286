"""Runs on two sorts of questions, such as exams before and after a date: the difference, and a control's beside it.

A difference that the control has too is of the questions; what a run has beyond it is of the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.benchmarks import FEW_CLUSTERS, describe_resampling, signed, why_none
from medexam.experiments import ComparisonScope
from medexam.metrics import Difference
from medexam.tables import NONE, Captioned, Table, percent
from medexam_companions.analysis.contrasts import difference_of_means

PER_LENGTH = {"token_mean": "a nat per token", "min_k": "a nat per token", "byte": "a nat per byte"}
"""Norm of a likelihood whose scores do not grow with the length of an option -> its unit."""


@dataclass(frozen=True)
class SideWords:
    """What the two sides are called."""

    title: str
    headers: tuple[str, str]
    phrases: tuple[str, str]
    """Behind a count of questions, and behind `does better` and `than`."""
    neither: str
    """Why questions are left out."""
    cause: str
    """What a run that does better on the first side, beyond its control, is consistent with."""


@dataclass(frozen=True)
class SideMeasure:
    """What is compared on both sides; its values are shown times 100."""

    name: str
    """In the title of the table, if it is not the accuracy."""
    description: str
    unit: str
    better: tuple[str, str]
    """`do better`, and `does better`."""


ACCURACY = SideMeasure("", "Accuracy, percent,", "percentage points", ("do better", "does better"))


@dataclass(frozen=True)
class Side:
    """The questions of one sort."""

    n: int
    exams: int
    means: tuple[float, ...]
    """Of each run, the control first: the accuracy, a fraction of 1, or the mean of another measure."""


@dataclass(frozen=True)
class TwoSides:
    """The runs on both sorts of questions."""

    words: SideWords
    sides: tuple[Side, Side]
    leftover_count: int
    """Compared questions that are of neither sort."""
    differences: tuple[Difference, ...]
    """Of each run, the control first: its accuracy on the first side minus that on the second."""
    against: tuple[Difference, ...]
    """Of each run but the control: its difference minus the control's."""
    clusters: str
    """What the intervals resample if there are enough."""
    measure: SideMeasure = ACCURACY
    scores: "TwoSides | None" = None
    """The same of how likely each run finds the options; None if a run has not read that."""

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """Build one table for each measure, a row for each run."""
        return [self._table(names), *([] if self.scores is None else self.scores.tables(names))]

    def _table(self, names: Sequence[str]) -> Captioned:
        first, second = self.sides
        rows = tuple(
            (
                name,
                percent(first.means[position]),
                percent(second.means[position]),
                signed(self.differences[position]),
                signed(self.against[position - 1]) if position else NONE,
            )
            for position, name in enumerate(names)
        )
        resamplings = {difference.resampled for difference in (*self.differences, *self.against)}
        method = describe_resampling(resamplings, "bootstrap", self.clusters)
        caption = (
            f"{self.measure.description} of {self._counted(0)} and {self._counted(1)}. Difference: the first minus the "
            f"second, {self.measure.unit}, with 95 % intervals ({method}). Against control: minus the difference of "
            f"{names[0]}, question by question."
        )
        if self.leftover_count:
            caption += f" Left out, because {self.words.neither}: {self.leftover_count:,}."
        headers = ("Run", *self.words.headers, "Difference", "Against control")
        return Table(f"Contamination: {self.words.title}{self.measure.name}", headers, rows), caption

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write what may be said of each run but the control, and of how few exams there are."""
        remarks = [
            self._sentence(name, names[0], difference) for name, difference in zip(names[1:], self.against, strict=True)
        ]
        if self.scores is not None:
            remarks += self.scores.sentences(names)
        few = min(side.exams for side in self.sides)
        if self.measure == ACCURACY and few < FEW_CLUSTERS:
            remarks.append(f"One side ({self.words.title}) has only {few} {self.clusters}: its intervals are rough.")
        return remarks

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build what `--json` says; fractions of 1, and log-probabilities in nats."""
        return {
            "not_told": self.leftover_count,
            **{
                header.lower(): {"n": side.n, "clusters": side.exams, "mean": dict(zip(keys, side.means, strict=True))}
                for header, side in zip(self.words.headers, self.sides, strict=True)
            },
            "difference": {
                key: difference.model_dump(mode="json") for key, difference in zip(keys, self.differences, strict=True)
            },
            "against_control": {
                key: difference.model_dump(mode="json") for key, difference in zip(keys[1:], self.against, strict=True)
            },
            **({} if self.scores is None else {"log_probability": self.scores.document(keys)}),
        }

    def _counted(self, position: int) -> str:
        side = self.sides[position]
        return f"{side.n:,} questions {self.words.phrases[position]} ({side.exams:,} {self.clusters})"

    def _sentence(self, name: str, control: str, difference: Difference) -> str:
        points = f"{signed(difference)} {self.measure.unit}"
        do, does = self.measure.better
        first, second = self.words.phrases
        if difference.interval is None:
            reason = why_none(difference.resampled, self.clusters)
            contrast = f"{name} beyond {control}, questions {first} minus those {second}: {points}"
            return f"{contrast}; no interval, because {reason}."
        if not difference.excludes_zero:
            return (
                f"{name} is not shown to {do} on questions {first} than on those {second}, beyond what {control} "
                f"does: {points}."
            )
        better, than = (first, second) if difference.value > 0 else (second, first)
        sentence = f"{name} {does} on questions {better} than on those {than}, beyond what {control} does: {points}."
        return f"{sentence} This is consistent with {self.words.cause}." if difference.value > 0 else sentence


def contrast_sides(
    words: SideWords, first: NDArray[np.bool_], second: NDArray[np.bool_], compared: ComparisonScope
) -> TwoSides:
    """Contrast the runs on the scored items that `first` and `second` select, at least one each."""
    accuracies = _contrast(words, first, second, compared, compared.matrix, ACCURACY)
    likelihoods = _log_probabilities(compared)
    scores = None if likelihoods is None else _contrast(words, first, second, compared, *likelihoods)
    return replace(accuracies, scores=scores)


def _contrast(
    words: SideWords,
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    compared: ComparisonScope,
    values: NDArray[np.float64],
    measure: SideMeasure,
) -> TwoSides:
    clusters = np.array(compared.clusters)

    def contrast(scores: NDArray[np.float64]) -> Difference:
        return difference_of_means(scores[first], [*clusters[first]], scores[second], [*clusters[second]])

    def side(mask: NDArray[np.bool_]) -> Side:
        return Side(int(mask.sum()), len(set(clusters[mask])), tuple(float(run[mask].mean()) for run in values))

    return TwoSides(
        words=words,
        sides=(side(first), side(second)),
        leftover_count=int((~first & ~second).sum()),
        differences=tuple(map(contrast, values)),
        against=tuple(contrast(run - values[0]) for run in values[1:]),
        clusters=compared.statistics.clusters,
        measure=measure,
    )


def _log_probabilities(compared: ComparisonScope) -> tuple[NDArray[np.float64], SideMeasure] | None:
    """Read how likely run i finds the exam's words of question j, at row i and column j; None unless all read them
    alike.

    The words are the question's second half where that is what is read, else all options as they are: the mean of their
    scores. Scores must be by length or by the least likely tokens: others grow with the length.
    """
    cells = [folder.read_record().cell for folder in compared.folders]
    askings = {
        (cell.program.option_text_norm, cell.dataset.altered) if cell.program.option_text_norm else None
        for cell in cells
    }
    rows = [[run[key].option_scores for key in compared.scores[0]] for run in compared.predictions]
    (one, *others) = askings
    if one is None or others or not all(scores for row in rows for scores in row):
        return None
    norm, alter = one
    if norm not in PER_LENGTH or alter.split()[:1] not in ([], ["question_continued"]):
        return None
    if not alter:
        values, words = [[float(np.mean([*(scores or {}).values()])) for scores in row] for row in rows], "options"
    else:
        numbers = [[exam_set.golds[key].number for key in compared.scores[0]] for exam_set in compared.sets]
        pairs = zip(rows, numbers, strict=True)
        values = [[(scores or {})[number] for scores, number in zip(*pair, strict=True)] for pair in pairs]
        words = "second halves"
    measure = SideMeasure(
        name=f", log-probability of the {words} ({norm})",
        description=f"Mean log-probability of the {words}, norm {norm}, hundredths of {PER_LENGTH[norm]},",
        unit=f"hundredths of {PER_LENGTH[norm]}",
        better=(f"find {words} likelier", f"finds {words} likelier"),
    )
    return np.array(values), measure
