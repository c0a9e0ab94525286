"""Runs that answer in words beside a baseline: each measure over the same questions, and the first one by group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from medexam.benchmarks.measures import paired_documents, paired_table, signed
from medexam.benchmarks.paired import FEW_CLUSTERS, TOLD, Pair, PairedRuns, TableRun
from medexam.benchmarks.words.tables import LEGEND, measures_by_run, name_measure
from medexam.errors import DatasetError
from medexam.metrics import ScoredRun
from medexam.metrics.paired.measures import compare_groups, compare_measures
from medexam.metrics.paired.results import Difference, PairedMeasure, Verdict
from medexam.metrics.tasks import question_of
from medexam.questions import Task
from medexam.tables import Captioned, equals, p_value

SAME = 1e-9
"""Means that differ by less are the same."""
Measures = Mapping[str, PairedMeasure]


@dataclass(frozen=True)
class PairedMeasuresRun(Pair):
    """One run beside the baseline."""

    measures: Measures
    """Measure -> both runs' means over the same questions; the first is the one that runs are known by."""
    by_group: Measures
    """Format or variant -> the first measure over it, in the order of the data."""

    @property
    def first(self) -> str:
        """The measure that runs are known by."""
        return next(iter(self.measures))

    @property
    def verdict(self) -> Verdict:  # type: ignore[override]
        """What may be said of the first measure."""
        return self.measures[self.first].verdict

    @property
    def differences(self) -> list[Difference]:
        """Every measure."""
        return [measure.difference for measure in self.measures.values()]

    def with_verdict(self, verdict: Verdict) -> Self:
        """Return the same with another verdict on the first measure."""
        first = self.measures[self.first].model_copy(update={"verdict": verdict})
        return replace(self, measures={**self.measures, self.first: first})


@dataclass(frozen=True)
class PairedMeasures(PairedRuns[PairedMeasuresRun]):
    """Two runs or more on the same questions, answered in words."""

    questions: int
    breakdown = "group"

    @property
    def first(self) -> str:
        """The measure that the runs are known by."""
        return self.pairs[0].first

    @property
    def origin(self) -> str:
        """`, variants of 30,` if there are fewer whole questions than questions."""
        return f", variants of {self.cluster_count}," if self.cluster_count < self.questions else ""

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write a sentence a pair on the first measure, and one on each other measure that tells the two apart."""
        return [
            self._verdict(name, names[0], measure, comparison)
            for name, pair in zip(names[1:], self.pairs, strict=True)
            for measure, comparison in pair.measures.items()
            if measure == self.first or comparison.verdict != "not told apart"
        ]

    def overall_tables(self, runs: Sequence[TableRun]) -> list[Captioned]:
        """Show the runs' scores and each pair's differences."""
        scores = replace(measures_by_run("", runs), title="Scores on the same questions")
        pairs = zip(runs[1:], self.pairs, strict=True)
        return [(scores, LEGEND), *(self._differences(run.name, runs[0].name, pair) for run, pair in pairs)]

    def breakdown_tables(self, names: Sequence[str]) -> list[Captioned]:
        """Show the first measure of each pair by group; empty if all questions are of one group."""
        if len(self.pairs[0].by_group) < 2:
            return []
        return [self._by_group(name, names[0], pair) for name, pair in zip(names[1:], self.pairs, strict=True)]

    def pair_documents(self) -> list[dict[str, Any]]:
        """Return every measure of each pair, and the first by group."""
        return [
            {
                "verdict": verdict,
                "measure": self.first,
                "measures": paired_documents(pair.measures),
                "by_group": paired_documents(pair.by_group),
            }
            for verdict, pair in zip(self.verdicts, self.pairs, strict=True)
        ]

    def _verdict(self, name: str, baseline: str, measure: str, comparison: PairedMeasure) -> str:
        test = f"p {equals(comparison.p)}"
        if len(self.pairs) * len(self.pairs[0].measures) > 1:
            test += f", {p_value(comparison.p_adjusted)} after Holm"
        if comparison.difference.interval is None:
            test += ", no interval with fewer than five questions"
        difference = signed(comparison.difference)
        phrase = TOLD[comparison.verdict]
        return f"{name} {phrase} {baseline} in {name_measure(measure)}: {difference} percentage points, {test}."

    def _differences(self, name: str, baseline: str, pair: PairedMeasuresRun) -> Captioned:
        several = " and runs" if len(self.pairs) > 1 else ""
        caption = (
            "Means over the same questions, percent; differences in percentage points, in brackets 95 % intervals "
            "(paired bootstrap over whole questions; none with fewer than five). p: paired permutation test, "
            f"two-sided, and adjusted by Holm for all measures{several}. Bold: a difference is shown."
        )
        if names := self._otherwise():
            caption += (
                f" {', '.join(map(name_measure, names))}: in the table above every format has the same weight, here "
                "every question."
            )
        measures = {name_measure(measure): comparison for measure, comparison in pair.measures.items()}
        return paired_table(f"{name} against {baseline}", "Measure", measures), caption

    def _by_group(self, name: str, baseline: str, pair: PairedMeasuresRun) -> Captioned:
        several = " and runs" if len(self.pairs) > 1 else ""
        caption = f"{name_measure(self.first)}, as above; p adjusted by Holm for all groups{several}"
        fewest = min(measure.questions for measure in pair.by_group.values())
        if fewest < FEW_CLUSTERS:
            caption += f"; intervals of few questions are rough, and the smallest group has {fewest}"
        return paired_table(f"{name} against {baseline}, by group", "Group", pair.by_group), f"{caption}."

    def _otherwise(self) -> list[str]:
        """List the measures whose score of a whole run is no mean over questions, and another number."""
        names = []
        for name, measure in self.pairs[0].measures.items():
            run_measure = self.metrics[0].measures.get(name)
            if run_measure is not None and run_measure.interval is None:
                names += [name] if run_measure.value is None or abs(run_measure.value - measure.baseline) > SAME else []
        return names


def compare_tasks(tasks: Sequence[Task], scored: Sequence[ScoredRun]) -> PairedMeasures:
    """Compare the first of `scored` with each other one, all on exactly `tasks`.

    Raises `DatasetError` if no measure is scored in all runs.
    """
    items = [each.items for each in scored]
    measures = compare_measures(items[0], items[1:])
    if not measures[0]:
        raise DatasetError(
            "there is nothing to compare: no measure is scored in all of these runs, because their data hold different "
            "right answers; compare runs whose dataset.path is the same"
        )
    first = next(iter(measures[0]))
    groups: dict[str, list[str]] = {}
    for task in tasks:
        groups.setdefault(task.group, []).append(task.key)
    by_group = compare_groups(items[0][first], [each[first] for each in items[1:]], groups)
    return PairedMeasures(
        metrics=tuple(each.metrics for each in scored),
        pairs=tuple(PairedMeasuresRun(*parts) for parts in zip(measures, by_group, strict=True)),
        clusters="whole questions",
        cluster_count=len({question_of(task.key) for task in tasks}),
        questions=len(tasks),
    )
