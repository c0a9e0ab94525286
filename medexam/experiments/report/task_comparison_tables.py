"""Tables and sentences of a comparison of runs that answer in words: scores, differences, and those by group.

For the terminal and for Markdown, each table with a caption that says how to read it.
"""

from collections.abc import Mapping
from dataclasses import replace

from medexam.experiments.compare.ranking import is_rankable
from medexam.experiments.compare.task_comparison import TaskComparison, TaskPair
from medexam.experiments.report.comparison_tables import FEW_EXAMS, SHOWN_PAIRS, describe_compared, equals, signed
from medexam.experiments.report.formatting import percent
from medexam.experiments.report.retrieval_tables import p_value
from medexam.experiments.report.tables import Table, TerminalTable
from medexam.experiments.report.task_tables import TASK_LEGEND, name_measure, task_comparison
from medexam.metrics.paired.measure_results import PairedMeasure

SAME = 1e-9
"""Means that differ by less are the same."""


def build_task_comparison_tables(comparison: TaskComparison) -> list[TerminalTable]:
    """The tables, ready for `Console.print`; the breakdowns of as many pairs as of exams."""
    tables = task_overall_tables(comparison)
    if len(comparison.pairs) <= SHOWN_PAIRS:
        tables += task_group_tables(comparison)
    return [TerminalTable(table, caption) for table, caption in tables]


def task_overall_tables(comparison: TaskComparison) -> list[tuple[Table, str]]:
    """The runs' scores and each pair's differences, each with its caption."""
    among = [is_rankable(run) for run in comparison.runs]
    scores = replace(task_comparison(comparison.runs, among), title="Scores on the same questions")
    return [(scores, TASK_LEGEND), *(_differences(comparison, pair) for pair in comparison.pairs)]


def task_group_tables(comparison: TaskComparison) -> list[tuple[Table, str]]:
    """The first measure of each pair by group, with its caption; empty where all questions are of one group."""
    several = len(comparison.pairs[0].by_group) > 1
    return [_by_group(comparison, pair) for pair in comparison.pairs] if several else []


def task_headline(comparison: TaskComparison) -> list[str]:
    """What was compared: a sentence on the questions, then what to know of how the runs differ."""
    whole = comparison.whole
    origin = f", variants of {whole}," if whole < len(comparison.questions) else ""
    few = f"{whole} question{'s' if whole > 1 else ''}" if whole < FEW_EXAMS else None
    return describe_compared(comparison, origin, few)


def task_verdicts(comparison: TaskComparison) -> list[str]:
    """A sentence a pair on the first measure, and one on each other measure that tells the two apart."""
    return [
        _verdict(comparison, pair, name, measure)
        for pair in comparison.pairs
        for name, measure in pair.measures.items()
        if name == comparison.first or measure.verdict != "not told apart"
    ]


def _verdict(comparison: TaskComparison, pair: TaskPair, name: str, measure: PairedMeasure) -> str:
    told = f"is {measure.verdict} than" if measure.verdict != "not told apart" else "is not told apart from"
    test = f"p {equals(measure.p)}"
    if len(comparison.pairs) * len(pair.measures) > 1:
        test += f", {p_value(measure.p_adjusted)} after Holm"
    if measure.difference.interval is None:
        test += ", no interval with fewer than two questions"
    return (
        f"{pair.name} {told} {comparison.names[0]} in {name_measure(name)}: {signed(measure.difference, 100)} "
        f"percentage points, {test}."
    )


def _differences(comparison: TaskComparison, pair: TaskPair) -> tuple[Table, str]:
    caption = (
        "Means over the same questions, percent; differences in percentage points, in brackets 95 % intervals (paired "
        "bootstrap over whole questions). p: paired permutation test, two-sided, and adjusted by Holm for all "
        f"measures{' and runs' if len(comparison.pairs) > 1 else ''}. Bold: told apart."
    )
    if other := _otherwise(comparison):
        caption += f" {', '.join(map(name_measure, other))}: above, formats count alike; here, questions do."
    measures = {name_measure(name): measure for name, measure in pair.measures.items()}
    return _table(f"{pair.name} against {comparison.names[0]}", "Measure", measures), caption


def _by_group(comparison: TaskComparison, pair: TaskPair) -> tuple[Table, str]:
    caption = (
        f"{name_measure(comparison.first)}, as above; p adjusted by Holm for all groups"
        f"{' and runs' if len(comparison.pairs) > 1 else ''}"
    )
    fewest = min(measure.questions for measure in pair.by_group.values())
    if fewest < FEW_EXAMS:
        caption += f"; intervals of few questions are rough, and the smallest group has {fewest}"
    return _table(f"{pair.name} against {comparison.names[0]}, by group", "Group", pair.by_group), f"{caption}."


def _table(title: str, header: str, measures: Mapping[str, PairedMeasure]) -> Table:
    rows = tuple(
        (
            name,
            str(measure.n),
            percent(measure.baseline),
            percent(measure.other),
            signed(measure.difference, 100),
            p_value(measure.p),
            p_value(measure.p_adjusted),
        )
        for name, measure in measures.items()
    )
    told = frozenset((row, 4) for row, measure in enumerate(measures.values()) if measure.verdict != "not told apart")
    return Table(title, (header, "n", "Baseline", "Run", "Difference", "p", "p Holm"), rows, told)


def _otherwise(comparison: TaskComparison) -> list[str]:
    """The measures whose score of a whole run is no mean over questions, and another number."""
    found = []
    for name, measure in comparison.pairs[0].measures.items():
        whole = comparison.runs[0].metrics.measures.get(name)
        if whole is not None and whole.interval is None:
            found += [name] if whole.value is None or abs(whole.value - measure.baseline) > SAME else []
    return found
