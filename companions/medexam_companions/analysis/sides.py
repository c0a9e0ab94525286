"""Runs on two sorts of questions, such as exams before and after a date: the difference, and a control's beside it.

A difference that the control has too is of the questions; what a run has beyond it is of the run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.frozen_model import FrozenModel
from medexam.measures import FEW_CLUSTERS, Difference, describe_resampling, signed
from medexam.tables import NONE, Table, percent
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


class SideRow(FrozenModel):
    """One run in one measure: the accuracy, a fraction of 1, or the mean of another measure."""

    means: tuple[float, float]
    """On both sides."""
    difference: Difference
    """The first minus the second."""
    against_control: Difference | None
    """The difference minus the control's; None for the control."""


@dataclass(frozen=True)
class SideMeasure:
    """What is compared on both sides; its values are shown times 100."""

    noun: str
    unit: str
    rows: tuple[SideRow, ...]
    """One for each run, the control first."""


@dataclass(frozen=True)
class TwoSides:
    """The runs on both sorts of questions."""

    name = "cutoff"
    words: SideWords
    measures: Mapping[str, SideMeasure]
    """`accuracy`, and `log_probability` if all runs have read how likely the options are."""
    counts: tuple[int, int]
    """Questions of each sort."""
    exams: tuple[int, int]
    """Their exams."""
    leftover: int
    """Compared questions that are of neither sort."""
    clusters: str
    """What the intervals resample if there are enough."""

    def tables(self, names: Sequence[str]) -> list[Table]:
        """Build one table for each measure, a row for each run."""
        questions = " and ".join(
            f"{count:,} questions {phrase} ({exams:,} {self.clusters})"
            for count, phrase, exams in zip(self.counts, self.words.phrases, self.exams, strict=True)
        )
        left_out = f" Left out, because {self.words.neither}: {self.leftover:,}." if self.leftover else ""
        headers = ("Run", *self.words.headers, "Difference", "Against control")
        tables = []
        for measure in self.measures.values():
            contrasts = [(row.difference, row.against_control) for row in measure.rows]
            kinds = {contrast.resampled for both in contrasts for contrast in both if contrast}
            caption = (
                f"Mean {measure.noun} ({measure.unit}) of {questions}. Difference: the first minus the second, with "
                f"95 % intervals ({describe_resampling(kinds, 'bootstrap', self.clusters)}), which are rough under "
                f"{FEW_CLUSTERS} {self.clusters} a side. Against control: minus the difference of {names[0]}, question "
                f"by question. {CAVEAT}{left_out}"
            )
            rows = tuple(
                (name, *map(percent, row.means), *(signed(contrast) if contrast else NONE for contrast in both))
                for name, row, both in zip(names, measure.rows, contrasts, strict=True)
            )
            tables.append(Table(f"Contamination: {self.words.title}, {measure.noun}", headers, rows, caption=caption))
        return tables

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write what may be said of each run but the control."""
        first, second = self.words.phrases
        return [
            judge(
                f"{name} has {signed(row.against_control)} {measure.unit} of {measure.noun} on questions {first} over "
                f"those {second}, beyond what {names[0]} has",
                row.against_control,
                self.words.cause,
            )
            for measure in self.measures.values()
            for name, row in zip(names, measure.rows, strict=True)
            if row.against_control
        ]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build what `--json` says; fractions of 1, and log-probabilities in nats."""
        sides = zip(self.words.headers, self.counts, self.exams, strict=True)
        return {
            "not_told": self.leftover,
            **{header.lower(): {"n": count, "clusters": exams} for header, count, exams in sides},
            **{
                name: {key: row.model_dump(mode="json") for key, row in zip(keys, measure.rows, strict=True)}
                for name, measure in self.measures.items()
            },
        }


def judge(sentence: str, difference: Difference, cause: str, *, sign: int = 1) -> str:
    """End a sentence by what a difference of that sign is consistent with, if its interval lies on one side of 0."""
    if difference.interval is None or not difference.excludes_zero or sign * difference.value < 0:
        return f"{sentence}, which is no sign of remembered questions."
    return f"{sentence}. This is consistent with {cause}."


def contrast_sides(
    words: SideWords, first: NDArray[np.bool_], second: NDArray[np.bool_], compared: ComparisonScope
) -> ComparisonSection:
    """Contrast the runs on the scored items that `first` and `second` select, at least one each."""
    clusters = np.array(compared.scored.clusters)

    def contrast(scores: Floats) -> Difference:
        return difference_of_means(scores[first], [*clusters[first]], scores[second], [*clusters[second]])

    def measure(values: Floats, noun: str, unit: str) -> SideMeasure:
        rows = (
            SideRow(
                means=(float(run[first].mean()), float(run[second].mean())),
                difference=contrast(run),
                against_control=contrast(run - values[0]) if place else None,
            )
            for place, run in enumerate(values)
        )
        return SideMeasure(noun, unit, tuple(rows))

    measures = {"accuracy": measure(compared.scored.first, "accuracy", "percentage points")}
    if (likelihoods := _log_probabilities(compared)) is not None:
        measures["log_probability"] = measure(*likelihoods)
    part = TwoSides(
        words,
        measures,
        counts=(int(first.sum()), int(second.sum())),
        exams=(len({*clusters[first]}), len({*clusters[second]})),
        leftover=int((~first & ~second).sum()),
        clusters=compared.statistics.clusters,
    )
    names, keys = compared.names, compared.run_keys
    return ComparisonSection(part.name, part.sentences(names), part.document(keys), part.tables(names))


def _log_probabilities(compared: ComparisonScope) -> tuple[Floats, str, str] | None:
    """Read how likely run i finds the exam's words of question j, at row i and column j; None unless all read them
    alike. Noun and unit stand beside it.

    The words are the question's second half where that is what is read, else all options as they are: the mean of their
    scores. Scores must be by length or by the least likely tokens: others grow with the length.
    """
    cells = [folder.read_record().cell for folder in compared.folders]
    asked = [(cell.program.model_dump(), cell.dataset.alter) for cell in cells]
    (one, *others) = {(program.get("read") == "option_text" and program["norm"], alter) for program, alter in asked}
    norm, alter = one
    rows = [
        [(run[key].option_scores or {}, exam_set.golds[key].number) for key in compared.scored.keys]
        for run, exam_set in zip(compared.predictions, compared.sets, strict=True)
    ]
    if others or norm not in PER_LENGTH or (alter and alter.how) not in {None, "question_continued"}:
        return None
    if not all(scores for row in rows for scores, _ in row):
        return None
    if alter is None:
        values, words = [[float(np.mean([*scores.values()])) for scores, _ in row] for row in rows], "options"
    else:
        values, words = [[scores[gold] for scores, gold in row] for row in rows], "second halves"
    return np.array(values), f"log-probability of the {words} ({norm})", f"hundredths of {PER_LENGTH[norm]}"
