"""Tables and sentences of a comparison: scores, differences, agreement, breakdowns, flipped questions.

For the terminal and for Markdown, each table with a caption that says how to read it.
"""

from collections.abc import Mapping

from medexam.experiments.compare.result import Compared, Comparison, Group, Pair, describe_all, describe_dropped
from medexam.experiments.report.formatting import NONE, decimal, percent, with_interval
from medexam.experiments.report.retrieval_tables import coefficient, p_value
from medexam.experiments.report.tables import Table, TerminalTable
from medexam.experiments.store.stored_run import AnyMetrics
from medexam.metrics.paired.results import Difference, Paired

SHOWN_FLIPS = 10
"""Questions that the terminal names."""
SHOWN_PAIRS = 2
"""Pairs whose breakdowns the terminal shows; of more it shows none, for they would bury the rest."""
FEW_EXAMS = 10
"""With fewer, a bootstrap over exams is rough, and its reader is told so."""


def build_comparison_tables(comparison: Comparison) -> list[TerminalTable]:
    """The tables, ready for `Console.print`; the breakdowns of two pairs at most."""
    tables = overall_tables(comparison)
    if len(comparison.pairs) <= SHOWN_PAIRS:
        tables += breakdown_tables(comparison)
    tables += flipped_tables(comparison, SHOWN_FLIPS)
    return [TerminalTable(table, caption) for table, caption in tables]


def overall_tables(comparison: Comparison) -> list[tuple[Table, str]]:
    """Scores, differences and agreement over all compared questions, each with its caption."""
    return [_scores(comparison), _differences(comparison), _agreement(comparison)]


def breakdown_tables(comparison: Comparison) -> list[tuple[Table, str]]:
    """The differences of every pair by discipline, then by year where the exams have one, each with its caption."""
    return [
        *(_breakdown(comparison, pair, "discipline", pair.by_discipline) for pair in comparison.pairs),
        *(_breakdown(comparison, pair, "year", pair.by_year) for pair in comparison.pairs if pair.by_year),
    ]


def flipped_tables(comparison: Comparison, shown: int) -> list[tuple[Table, str]]:
    """The first `shown` flipped questions with every run's answer, and the caption; empty where none flipped."""
    flipped = comparison.flipped
    if not flipped:
        return []
    count = str(len(flipped)) if len(flipped) <= shown else f"first {shown} of {len(flipped)}"
    rows = tuple(
        (each.question, str(each.gold), *(NONE if answer is None else str(answer) for answer in each.answers))
        for each in flipped[:shown]
    )
    right = frozenset(
        (row, 2 + at)
        for row, each in enumerate(flipped[:shown])
        for at, answer in enumerate(each.answers)
        if answer == each.gold
    )
    caption = (
        "Questions that some runs have right and others have not, with each run's answer, the right ones stressed."
    )
    if len(flipped) > shown:
        caption += " --json lists all."
    headers = ("Question", "Gold", *comparison.names)
    return [(Table(f"Flipped questions ({count})", headers, rows, best=right), caption)]


def headline(comparison: Comparison) -> list[str]:
    """What was compared: a sentence on the questions, then what to know of how the runs differ."""
    exams = f"{comparison.exams} exams"
    return describe_compared(comparison, f" of {exams}", exams if comparison.exams < FEW_EXAMS else None)


def describe_compared(comparison: Compared[AnyMetrics], origin: str, few: str | None) -> list[str]:
    """The same of any comparison: `origin` stands behind the questions; `few` names clusters that are too few."""
    dataset = comparison.runs[0].record.cell.dataset
    languages = list(dict.fromkeys(run.record.cell.dataset.language for run in comparison.runs))
    lines = [
        f"{len(comparison.questions)} questions{origin} of {dataset.name} {', '.join(languages)}: "
        f"those that {describe_all(comparison.runs)} scored. {describe_dropped(comparison.dropped)}."
    ]
    if few is not None:
        lines.append(f"The intervals resample {few} only and are rough.")
    return lines + [f"{note[0].upper()}{note[1:]}." for note in comparison.notes]


def verdicts(comparison: Comparison) -> list[str]:
    """One sentence a pair: what may be said of its accuracy."""
    return [_verdict(comparison, pair) for pair in comparison.pairs]


def oracle(comparison: Comparison) -> str:
    """What the runs have right together, in a sentence."""
    together = comparison.together
    share = percent(together.any_right / together.n)
    more = together.any_right - max(run.metrics.right for run in comparison.runs)
    return (
        f"{together.any_right} questions ({share} %, the oracle) are right in at least one run, {more} more than in "
        f"the run with the most; {together.all_right} are right in all, {together.none_right} in none."
    )


def _verdict(comparison: Comparison, pair: Pair) -> str:
    accuracy, p = pair.paired.accuracy, pair.paired.flips.p
    is_told = f"is {pair.verdict} than" if pair.verdict != "not told apart" else "is not told apart from"
    difference = signed(accuracy, 100)
    test = f"McNemar's p {equals(p)}"
    if len(comparison.pairs) > 1:
        test += f", {p_value(pair.p_adjusted)} after Holm"
    if accuracy.interval is None:
        test += ", no interval with fewer than two exams"
    return f"{pair.name} {is_told} {comparison.names[0]} in accuracy: {difference} percentage points, {test}."


def _scores(comparison: Comparison) -> tuple[Table, str]:
    rows = tuple(
        (
            name,
            str(run.metrics.right),
            with_interval(percent(run.metrics.accuracy), run.metrics.accuracy_interval),
            percent(run.metrics.exam_score),
            decimal(run.metrics.points),
            percent(run.metrics.unanswered_ratio),
            str(alone),
        )
        for name, run, alone in zip(comparison.names, comparison.runs, comparison.together.alone_right, strict=True)
    )
    chance = comparison.runs[0].metrics.chance_accuracy
    headers = ("Run", "Right", "Accuracy", "Exam score", "Points", "No answer", "Alone right")
    caption = (
        f"n = {len(comparison.questions)} for every run; the first is the baseline. Percent of n, with Wilson's 95 % "
        "interval of each run on its own: overlapping ones do not say that runs are alike. Points: 3 right - wrong per "
        f"exam. A uniform choice has {percent(chance)} % right. Alone right: questions that no other run has right. "
        f"{oracle(comparison)}"
    )
    return Table("Scores on the same questions", headers, rows), caption


def _differences(comparison: Comparison) -> tuple[Table, str]:
    several = len(comparison.pairs) > 1
    rows = tuple(
        (
            pair.name,
            signed(pair.paired.accuracy, 100),
            signed(pair.paired.exam_score, 100),
            signed(pair.paired.points, 1),
            p_value(pair.paired.flips.p),
            *((p_value(pair.p_adjusted),) if several else ()),
        )
        for pair in comparison.pairs
    )
    headers = ("Run", "Accuracy", "Exam score", "Points", "p", *(("p Holm",) if several else ()))
    caption = (
        "The run minus the baseline: percentage points, and points of an exam, in brackets 95 % intervals (paired "
        "bootstrap over whole exams). p: McNemar's exact test, two-sided"
    )
    caption += ", and adjusted by Holm for all rows." if several else "."
    return Table(f"Against {comparison.names[0]}", headers, rows), caption


def _agreement(comparison: Comparison) -> tuple[Table, str]:
    rows = tuple(
        (
            pair.name,
            *map(str, _counts(pair.paired)),
            percent(pair.paired.either_right),
            percent(pair.paired.same_answer),
            NONE if pair.paired.kappa is None else coefficient(pair.paired.kappa),
        )
        for pair in comparison.pairs
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
        "of the two has right. Same answer: percent, right or wrong. Kappa: Cohen's, of the answers, 0 where chance "
        "explains them."
    )
    return Table(f"Agreement with {comparison.names[0]}", headers, rows), caption


def _breakdown(comparison: Comparison, pair: Pair, what: str, groups: Mapping[str, Group]) -> tuple[Table, str]:
    rows = tuple(
        (
            name,
            str(group.paired.n),
            percent(group.paired.baseline_accuracy),
            percent(group.paired.baseline_accuracy + group.paired.accuracy.value),
            signed(group.paired.accuracy, 100),
            *map(str, _counts(group.paired)[:2]),
            p_value(group.p_adjusted),
        )
        for name, group in groups.items()
    )
    headers = (what.capitalize(), "n", "Baseline", "Run", "Difference", "Right to wrong", "Wrong to right", "p Holm")
    fewest = min(group.paired.exams for group in groups.values())
    caption = "Accuracy, percent, with intervals over whole exams"
    if fewest < FEW_EXAMS:
        caption += f", {fewest} in the smallest group and so rough"
    caption += ". p: McNemar's, adjusted by Holm for this breakdown of all pairs."
    return Table(f"{pair.name} against {comparison.names[0]}, by {what}", headers, rows), caption


def _counts(paired: Paired) -> tuple[int, int, int, int]:
    flips = paired.flips
    return len(flips.right_to_wrong), len(flips.wrong_to_right), flips.both_right, flips.both_wrong


def signed(difference: Difference, scale: float) -> str:
    """`+3.3 [-1.0, 7.6]`: a plus before what is more, and no sign before a zero."""
    text = decimal(scale * difference.value)
    sign = "" if text.startswith("-") or text == "0.0" else "+"
    return with_interval(sign + text, difference.interval, scale=scale)


def equals(p: float) -> str:
    """`= 0.012` or `< 0.001`, behind the name of a test."""
    text = p_value(p)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"
