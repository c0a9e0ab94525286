"""Runs on the same items as tables: scores, differences, agreement, breakdowns and flipped items; and their JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from medexam.measures.benchmarks.base import Benchmark
from medexam.measures.benchmarks.measures import show_number, signed
from medexam.measures.benchmarks.paired import FEW_CLUSTERS, Paired, TableRun, count_alone, count_together
from medexam.measures.benchmarks.resampling import describe_resampling
from medexam.measures.benchmarks.tables import legend, name_facet, name_measure, overview
from medexam.measures.benchmarks.verdicts import find_case
from medexam.measures.paired.pairs import NO_ANSWER, Measured
from medexam.measures.paired.power import detectable_difference
from medexam.measures.paired.results import PairedMeasure
from medexam.measures.results import Resampling, Unit
from medexam.tables import NONE, Table, coefficient, p_value, percent

AnyBenchmark = Benchmark[Any, Any]


def overall_tables(benchmark: AnyBenchmark, paired: Paired, runs: Sequence[TableRun]) -> list[Table]:
    """Show scores, differences and, of right and wrong answers, agreement over all compared items."""
    names = [run.name for run in runs]
    tables = [
        _scores(benchmark, paired, runs),
        difference_table([pair.measures for pair in paired.pairs], names, paired.clusters),
    ]
    return [*tables, _agreement(paired, names)] if benchmark.right_or_wrong else tables


def _scores(benchmark: AnyBenchmark, paired: Paired, runs: Sequence[TableRun]) -> Table:
    table = overview("", [replace(run, is_best=False) for run in runs])
    caption = legend(benchmark, paired.metrics)
    if benchmark.right_or_wrong:
        alone = count_alone(paired.sheet)
        rows = tuple((*row, str(count)) for row, count in zip(table.rows, alone, strict=True))
        table = replace(table, headers=(*table.headers, "Alone right"), rows=rows)
        together = count_together(paired.sheet)
        gain = together["any_right"] - max(metrics.right or 0 for metrics in paired.metrics)
        caption += (
            f" Alone right: questions that no other run has right. {together['any_right']} questions "
            f"({percent(together['any_right'] / together['n'])} %, the oracle) are right in at least one run, {gain} "
            f"more than in the best run; {together['all_right']} are right in all, {together['none_right']} in none."
        )
    return replace(table, title="Scores on the same questions", caption=caption)


def difference_table(families: Sequence[Measured], names: Sequence[str], clusters: str, title: str = "") -> Table:
    """Show each measure of each run beside the baseline's; what tells two runs apart is stressed."""
    cells = [
        (name, measure, paired)
        for name, family in zip(names[1:], families, strict=True)
        for measure, paired in family.items()
    ]
    rows = tuple(
        (
            name,
            measure if paired.unit is Unit.OWN else name_measure(measure),
            str(paired.n),
            show_number(paired.baseline, paired.unit),
            show_number(paired.other, paired.unit),
            signed(paired.difference, paired.unit),
            _p(paired.p),
            _p(paired.p_adjusted),
        )
        for name, measure, paired in cells
    )
    kinds = (paired.difference.resampled for _, _, paired in cells)
    test = "McNemar's exact test" if any(paired.flips for _, _, paired in cells) else "paired permutation test"
    caption = (
        "The run minus the baseline; shares in percent and percentage points, in brackets 95 % intervals "
        f"({describe_resampling(kinds, 'paired bootstrap', clusters)}). p: {test}, two-sided; adjusted by Holm for all "
        "rows. Bold: a difference is shown."
    )
    headers = ("Run", "Measure", "n", "Baseline", "Score", "Difference", "p", "p Holm")
    return _stress(
        Table(title or f"Against {names[0]}", headers, rows, text_columns=2, caption=caption),
        [each[2] for each in cells],
    )


def breakdown_tables(benchmark: AnyBenchmark, paired: Paired, names: Sequence[str]) -> list[Table]:
    """Show the first measure of every pair by each facet; of answers in words, no facet of a single group."""
    tables = []
    for facet, families in paired.by.items():
        if len(families[0]) < 2 and not benchmark.right_or_wrong:
            continue
        cells = [
            (name, group, each)
            for name, family in zip(names[1:], families, strict=True)
            for group, each in family.items()
        ]
        rows = tuple(
            (
                *(name, group, str(each.n)),
                *(show_number(score, each.unit) for score in (each.baseline, each.other)),
                signed(each.difference, each.unit),
                *((str(each.flips.right_to_wrong), str(each.flips.wrong_to_right)) if each.flips else ()),
                _p(each.p_adjusted),
            )
            for name, group, each in cells
        )
        flips = ("Right to wrong", "Wrong to right") if benchmark.right_or_wrong else ()
        headers = ("Run", name_facet(benchmark, facet), "n", "Baseline", "Score", "Difference", *flips, "p Holm")
        kinds = {each.difference.resampled for _, _, each in cells}
        caption = (
            f"{name_measure(paired.measure)}, percent, with 95 % intervals "
            f"({describe_resampling(kinds, 'paired bootstrap', paired.clusters)})"
        )
        counts = [each.clusters for _, _, each in cells if each.difference.resampled is Resampling.CLUSTERS]
        if counts and min(counts) < FEW_CLUSTERS:
            caption += f"; rough if there are few, and one group is of {min(counts)} {paired.clusters}"
        caption += ". p adjusted by Holm for all rows."
        title = f"Against {names[0]}, by {name_facet(benchmark, facet).lower()}"
        tables.append(
            _stress(Table(title, headers, rows, text_columns=2, caption=caption), [each for _, _, each in cells])
        )
    return tables


def _stress(table: Table, cells: Sequence[PairedMeasure]) -> Table:
    """Stress the differences that are shown."""
    best = frozenset((row, 5) for row, each in enumerate(cells) if each.verdict != "not told apart")
    return replace(table, best=best)


def _p(p: float | None) -> str:
    return NONE if p is None else p_value(p)


def _agreement(paired: Paired, names: Sequence[str]) -> Table:
    """Show how often each run and the baseline answer alike."""
    rows = tuple(
        (
            name,
            *map(str, (flips.right_to_wrong, flips.wrong_to_right, flips.both_right, flips.both_wrong)),
            percent(1 - flips.both_wrong / flips.n),
            percent(flips.same_answer),
            NONE if flips.kappa is None else coefficient(flips.kappa),
        )
        for name, pair in zip(names[1:], paired.pairs, strict=True)
        if (flips := pair.first.flips) is not None
    )
    headers = (
        "Run",
        "Right to wrong",
        "Wrong to right",
        "Both right",
        "Both wrong",
        "Either right",
        "Same answer",
        "Kappa",
    )
    caption = (
        "Questions, from the baseline to the run; unanswered counts as wrong. Either right: percent that at least one "
        "of the two has right. Same answer: percent, right or wrong. Kappa: Cohen's, 0 if the "
        "answers agree only by chance."
    )
    return Table(f"Agreement with {names[0]}", headers, rows, caption=caption)


def flipped_tables(paired: Paired, golds: Mapping[str, Any], names: Sequence[str], limit: int) -> list[Table]:
    """Show the first `limit` questions that some runs have right and others have not; empty if there is none."""
    sheet, places = paired.sheet, _flipped(paired)
    if not len(places):
        return []
    first = places[:limit]
    count = str(len(places)) if len(places) <= limit else f"first {limit} of {len(places)}"
    answers = [(sheet.keys[place], _answers(paired, place)) for place in first]
    rows = tuple(
        (key, str(golds[key].number), *(NONE if answer is None else str(answer) for answer in row))
        for key, row in answers
    )
    right = frozenset(
        (row, 2 + run) for row, place in enumerate(first) for run in np.flatnonzero(sheet.first[:, place]).tolist()
    )
    caption = "Questions that some runs have right and others wrong, with each run's answer; right answers are marked."
    if len(places) > limit:
        caption += " --json lists all."
    return [Table(f"Flipped questions ({count})", ("Question", "Gold", *names), rows, best=right, caption=caption)]


def paired_document(paired: Paired, golds: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Build what `--json` says of the pairs, in the order of `keys`, and of what the runs have right together."""
    document: dict[str, Any] = {
        "pairs": [
            {
                "run": key,
                "verdict": find_case(pair).verdict,
                "measures": document_of(pair.measures),
                "views": {name: document_of(measures) for name, measures in pair.views.items()},
                "by": {facet: document_of(families[place]) for facet, families in paired.by.items()},
            }
            for place, (key, pair) in enumerate(zip(keys[1:], paired.pairs, strict=True))
        ]
    }
    if paired.sheet.answers is None:
        return document
    return document | {
        "together": count_together(paired.sheet),
        "flipped": [
            {
                "question": key,
                "gold": golds[key].number,
                "answers": dict(zip(keys, _answers(paired, place), strict=True)),
            }
            for place in _flipped(paired)
            for key in [paired.sheet.keys[place]]
        ],
    }


def document_of(measures: Measured) -> dict[str, Any]:
    """Map names of measures, groups or views to all that is found of them."""
    documents = {}
    for name, measure in measures.items():
        documents[name] = measure.model_dump(mode="json", exclude={"unit"})
        if measure.flips is not None:
            documents[name]["detectable_difference"] = detectable_difference(measure.n, measure.flips.share)
    return documents


def _flipped(paired: Paired) -> list[int]:
    return [] if paired.sheet.answers is None else np.flatnonzero(paired.sheet.flipped).tolist()


def _answers(paired: Paired, place: int) -> list[int | None]:
    """Return the printed number that each run chose; None if it chose none."""
    if paired.sheet.answers is None:
        return []
    return [None if answer == NO_ANSWER else int(answer) for answer in paired.sheet.answers[:, place]]
