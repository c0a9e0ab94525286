"""Runs on two sorts of questions, such as exams before and after a date: the difference, and a control's beside it.

A difference that the control has too is of the questions; what a run has beyond it is of the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.benchmarks import FEW_CLUSTERS, describe_resampling, signed, why_none
from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.metrics import Difference
from medexam.tables import NONE, Captioned, Table, percent
from medexam_companions.analysis.contrasts import Floats, difference_of_means

CAVEAT = "None of this shows what a model was trained on: exams differ in difficulty, and stated cutoffs may be wrong."
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

    noun: str
    unit: str


ACCURACY = SideMeasure("accuracy", "percentage points")


@dataclass(frozen=True)
class TwoSides(ComparisonSection):
    """The runs on both sorts of questions."""

    name = "cutoff"
    words: SideWords
    measure: SideMeasure
    counts: tuple[int, int]
    """Questions of each sort."""
    exams: tuple[int, int]
    """Their exams."""
    leftover: int
    """Compared questions that are of neither sort."""
    means: tuple[tuple[float, float], ...]
    """Of each run on both sides, the control first: the accuracy, a fraction of 1, or the mean of another measure."""
    differences: tuple[Difference, ...]
    """Of each run: its mean on the first side minus that on the second."""
    against: tuple[Difference, ...]
    """Of each run but the control: its difference minus the control's."""
    clusters: str
    """What the intervals resample if there are enough."""
    scores: "TwoSides | None" = None
    """The same of how likely each run finds the options; None if a run has not read that."""

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """Build one table for each measure, a row for each run."""
        against = [NONE, *map(signed, self.against)]
        rows = tuple(
            (name, *map(percent, means), signed(difference), beyond)
            for name, means, difference, beyond in zip(names, self.means, self.differences, against, strict=True)
        )
        method = describe_resampling(
            {difference.resampled for difference in (*self.differences, *self.against)}, "bootstrap", self.clusters
        )
        questions = " and ".join(
            f"{count:,} questions {phrase} ({exams:,} {self.clusters})"
            for count, phrase, exams in zip(self.counts, self.words.phrases, self.exams, strict=True)
        )
        caption = (
            f"Mean {self.measure.noun} ({self.measure.unit}) of {questions}. Difference: the first minus the second, "
            f"with 95 % intervals ({method}). Against control: minus the difference of {names[0]}, question by "
            f"question. {CAVEAT}"
        )
        if self.leftover:
            caption += f" Left out, because {self.words.neither}: {self.leftover:,}."
        headers = ("Run", *self.words.headers, "Difference", "Against control")
        noun = "" if self.measure == ACCURACY else f", {self.measure.noun}"
        table = Table(f"Contamination: {self.words.title}{noun}", headers, rows)
        return [(table, caption), *([] if self.scores is None else self.scores.tables(names))]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write what may be said of each run but the control, and of how few exams there are."""
        remarks = [
            self._sentence(name, names[0], difference) for name, difference in zip(names[1:], self.against, strict=True)
        ]
        if self.scores is not None:
            remarks += self.scores.sentences(names)
        few = min(self.exams)
        if self.measure == ACCURACY and few < FEW_CLUSTERS:
            remarks.append(f"One side ({self.words.title}) has only {few} {self.clusters}: its intervals are rough.")
        return remarks

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build what `--json` says; fractions of 1, and log-probabilities in nats."""
        differences, against = (
            [each.model_dump(mode="json") for each in of] for of in (self.differences, self.against)
        )
        sides = zip(self.words.headers, self.counts, self.exams, zip(*self.means, strict=True), strict=True)
        return {
            "not_told": self.leftover,
            **{
                header.lower(): {"n": count, "clusters": exams, "mean": dict(zip(keys, means, strict=True))}
                for header, count, exams, means in sides
            },
            "difference": dict(zip(keys, differences, strict=True)),
            "against_control": dict(zip(keys[1:], against, strict=True)),
            **({} if self.scores is None else {"log_probability": self.scores.document(keys)}),
        }

    def _sentence(self, name: str, control: str, difference: Difference) -> str:
        points, noun = f"{signed(difference)} {self.measure.unit}", self.measure.noun
        first, second = self.words.phrases
        if difference.interval is None:
            reason = why_none(difference.resampled, self.clusters)
            contrast = f"{name} beyond {control}, {noun} on questions {first} minus those {second}: {points}"
            return f"{contrast}; no interval, because {reason}."
        if not difference.excludes_zero:
            return (
                f"{name} is not shown to have another {noun} on questions {first} than on those {second}, beyond what "
                f"{control} has: {points}."
            )
        better, than = (first, second) if difference.value > 0 else (second, first)
        sentence = f"{name} has a higher {noun} on questions {better} than on those {than}, beyond what {control} has"
        cause = f" This is consistent with {self.words.cause}." if difference.value > 0 else ""
        return f"{sentence}: {points}.{cause}"


def contrast_sides(
    words: SideWords, first: NDArray[np.bool_], second: NDArray[np.bool_], compared: ComparisonScope
) -> TwoSides:
    """Contrast the runs on the scored items that `first` and `second` select, at least one each."""
    clusters = np.array(compared.clusters)

    def contrast(scores: Floats) -> Difference:
        return difference_of_means(scores[first], [*clusters[first]], scores[second], [*clusters[second]])

    def measured(values: Floats, measure: SideMeasure) -> TwoSides:
        return TwoSides(
            words=words,
            measure=measure,
            counts=(int(first.sum()), int(second.sum())),
            exams=(len({*clusters[first]}), len({*clusters[second]})),
            leftover=int((~first & ~second).sum()),
            means=tuple((float(run[first].mean()), float(run[second].mean())) for run in values),
            differences=tuple(map(contrast, values)),
            against=tuple(contrast(run - values[0]) for run in values[1:]),
            clusters=compared.statistics.clusters,
        )

    likelihoods = _log_probabilities(compared)
    return replace(measured(compared.matrix, ACCURACY), scores=likelihoods and measured(*likelihoods))


def _log_probabilities(compared: ComparisonScope) -> tuple[Floats, SideMeasure] | None:
    """Read how likely run i finds the exam's words of question j, at row i and column j; None unless all read them
    alike.

    The words are the question's second half where that is what is read, else all options as they are: the mean of their
    scores. Scores must be by length or by the least likely tokens: others grow with the length.
    """
    cells = [folder.read_record().cell for folder in compared.folders]
    (one, *others) = {(cell.program.option_text_norm, cell.dataset.alter) for cell in cells}
    rows = [[run[key].option_scores for key in compared.scores[0]] for run in compared.predictions]
    norm, alter = one
    how = alter and alter.how
    if others or norm not in PER_LENGTH or how not in {None, "question_continued"}:
        return None
    if not all(scores for row in rows for scores in row):
        return None
    if how is None:
        values, words = [[float(np.mean([*(scores or {}).values()])) for scores in row] for row in rows], "options"
    else:
        numbers = [[exam_set.golds[key].number for key in compared.scores[0]] for exam_set in compared.sets]
        pairs = zip(rows, numbers, strict=True)
        values = [[(scores or {})[number] for scores, number in zip(*pair, strict=True)] for pair in pairs]
        words = "second halves"
    measure = SideMeasure(f"log-probability of the {words} ({norm})", f"hundredths of {PER_LENGTH[norm]}")
    return np.array(values), measure
