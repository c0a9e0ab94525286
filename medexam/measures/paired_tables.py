"""Runs on the same items as tables: scores, differences, agreement, breakdowns and flipped items; and their JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from medexam.measures.benchmarks.base import Benchmark
from medexam.measures.comparing import FEW_CLUSTERS, Paired, count_together
from medexam.measures.margins import detectable_difference
from medexam.measures.paired import NO_ANSWER, Measured
from medexam.measures.results import Resampling, Unit
from medexam.measures.shown import describe_resampling, name_measure, show_number, signed
from medexam.measures.tables import TableRun, legend, name_facet, overview
from medexam.measures.verdicts import find_case
from medexam.tables import NONE, Table, coefficient, p_value, percent


def overall_tables(benchmark: Benchmark[Any, Any], paired: Paired, runs: Sequence[TableRun]) -> list[Table]:
    """Show scores, differences and, of right and wrong answers, agreement over all compared items."""
    names = [run.name for run in runs]
    table = overview("Scores on the same questions", [replace(run, is_best=False) for run in runs])
    caption, agreement = legend([benchmark], paired.metrics), []
    if benchmark.right_or_wrong:
        together, best = count_together(paired.sheet), max(metrics.right or 0 for metrics in paired.metrics)
        caption += (
            f" {together['any_right']} questions ({percent(together['any_right'] / together['n'])} %, the oracle) are "
            f"right in at least one run, {together['any_right'] - best} more than in the best run; "
            f"{together['all_right']} are right in all, {together['none_right']} in none."
        )
        agreement = [_agreement(paired, names)]
    differences = difference_table([pair.measures for pair in paired.pairs], names, paired.clusters)
    return [replace(table, caption=caption), differences, *agreement]


def difference_table(
    families: Sequence[Measured], names: Sequence[str], clusters: str, title: str = "", group: str = ""
) -> Table:
    """Show each measure of each run beside the baseline's; what tells two runs apart is stressed.

    With `group`, families map groups of that header to one measure.
    """
    cells = [
        (name, key, each) for name, family in zip(names[1:], families, strict=True) for key, each in family.items()
    ]
    rows = tuple(
        (
            *(name, key if group or each.unit is Unit.OWN else name_measure(key), str(each.n)),
            *(show_number(score, each.unit) for score in (each.baseline, each.other)),
            signed(each.difference, each.unit),
            *(NONE if p is None else p_value(p) for p in (each.p, each.p_adjusted)),
        )
        for name, key, each in cells
    )
    kinds = [each.difference.resampled for _, _, each in cells]
    test = "McNemar's exact test" if any(each.flips for _, _, each in cells) else "paired permutation test"
    how = describe_resampling(kinds, "paired bootstrap", clusters)
    counts = [each.clusters for _, _, each in cells if each.difference.resampled is Resampling.CLUSTERS]
    if group and min(counts, default=FEW_CLUSTERS) < FEW_CLUSTERS:
        how += f"; rough: one group is of {min(counts)} {clusters}"
    caption = (
        f"The run minus the baseline; shares in percent and percentage points, in brackets 95 % intervals ({how}). p: "
        f"{test}, two-sided; adjusted by Holm for all rows. Bold: a difference is shown."
    )
    headers = ("Run", group or "Measure", "n", "Baseline", "Score", "Difference", "p", "p Holm")
    best = frozenset((row, 5) for row, (_, _, each) in enumerate(cells) if each.verdict != "not told apart")
    return Table(title or f"Against {names[0]}", headers, rows, best, text_columns=2, caption=caption)


def breakdown_tables(benchmark: Benchmark[Any, Any], paired: Paired, names: Sequence[str]) -> list[Table]:
    """Show the first measure of every pair by each facet; of answers in words, no facet of a single group."""
    tables = []
    for facet, families in paired.by.items():
        header = name_facet(benchmark, facet)
        if len(families[0]) > 1 or benchmark.right_or_wrong:
            title = f"Against {names[0]}, by {header.lower()}"
            table = difference_table(families, names, paired.clusters, title, header)
            tables.append(replace(table, caption=f"{name_measure(paired.measure)}. {table.caption}"))
    return tables


def _agreement(paired: Paired, names: Sequence[str]) -> Table:
    rows = tuple(
        (
            name,
            *map(str, (flips.right_to_wrong, flips.wrong_to_right, flips.both_right, flips.both_wrong)),
            *map(percent, (1 - flips.both_wrong / flips.n, flips.same_answer)),
            coefficient(flips.kappa),
        )
        for name, pair in zip(names[1:], paired.pairs, strict=True)
        if (flips := pair.first.flips) is not None
    )
    counts = ("Right to wrong", "Wrong to right", "Both right", "Both wrong")
    caption = (
        "Questions, from the baseline to the run; unanswered counts as wrong. Either right: percent that at least one "
        "of the two has right. Same answer: percent, right or wrong. Kappa: Cohen's, 0 if the "
        "answers agree only by chance."
    )
    headers = ("Run", *counts, "Either right", "Same answer", "Kappa")
    return Table(f"Agreement with {names[0]}", headers, rows, caption=caption)


def flipped_tables(paired: Paired, golds: Mapping[str, Any], names: Sequence[str], limit: int) -> list[Table]:
    """Show the first `limit` questions that some runs have right and others have not; empty if there is none."""
    flips = _flipped(paired, golds)
    if not flips:
        return []
    rows = tuple(
        (key, str(gold), *(NONE if answer is None else str(answer) for answer in answers))
        for key, gold, answers, _ in flips[:limit]
    )
    right = frozenset((row, 2 + run) for row, (*_, runs) in enumerate(flips[:limit]) for run in runs)
    caption = "Questions that some runs have right and others wrong, with each run's answer; right answers are marked."
    count = str(len(flips))
    if len(flips) > limit:
        count, caption = f"first {limit} of {len(flips)}", f"{caption} --json lists all."
    return [Table(f"Flipped questions ({count})", ("Question", "Gold", *names), rows, right, caption=caption)]


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
            {"question": key, "gold": gold, "answers": dict(zip(keys, answers, strict=True))}
            for key, gold, answers, _ in _flipped(paired, golds)
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


def _flipped(paired: Paired, golds: Mapping[str, Any]) -> list[tuple[str, int, list[int | None], list[int]]]:
    """List key, gold, the number that each run chose, and which runs have it right, of each flipped question."""
    sheet = paired.sheet
    if sheet.answers is None:
        return []
    return [
        (
            key := sheet.keys[place],
            golds[key].number,
            [None if answer == NO_ANSWER else answer for answer in sheet.answers[:, place].tolist()],
            np.flatnonzero(sheet.first[:, place]).tolist(),
        )
        for place in np.flatnonzero(sheet.first.min(axis=0) != sheet.first.max(axis=0)).tolist()
    ]
