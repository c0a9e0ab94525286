"""Tables and sentences of runs on the same exams: scores, differences, agreement, breakdowns, flipped questions.

Each table has a caption that says how to read it.
"""

from collections.abc import Mapping, Sequence

from medexam.benchmarks.measures import signed
from medexam.benchmarks.paired import FEW_CLUSTERS, TOLD, Flipped, PairedGroup, PairedRun
from medexam.benchmarks.resampling import describe_resampling, why_none
from medexam.metrics import Metrics
from medexam.metrics.paired.power import detectable_difference, questions_needed
from medexam.metrics.paired.results import Complementarity, Paired
from medexam.metrics.results import Resampling, Unit
from medexam.tables import (
    NONE,
    Captioned,
    Table,
    coefficient,
    count_stars,
    decimal,
    equals,
    p_value,
    percent,
    with_interval,
)


def scores(all_metrics: Sequence[Metrics], together: Complementarity, names: Sequence[str]) -> Captioned:
    """Show each run's scores on the same questions."""
    rows = tuple(
        (
            name,
            str(metrics.right),
            with_interval(percent(metrics.measure("accuracy").value), metrics.measure("accuracy").interval),
            percent(metrics.measure("exam_score").value),
            decimal(metrics.measure("points").value),
            percent(metrics.measure("unanswered_ratio").value),
            str(alone),
        )
        for name, metrics, alone in zip(names, all_metrics, together.alone_right, strict=True)
    )
    chance = all_metrics[0].chance_accuracy
    headers = ("Run", "Right", "Accuracy", "Exam score", "Points", "No answer", "Alone right")
    caption = (
        f"n = {together.n} for every run; the first is the baseline. Percent of n, with Wilson's 95 % interval of "
        "each run on its own: runs may differ even if their intervals overlap. Points: 3 right - wrong per exam. A "
        f"uniform choice has {percent(chance)} % right. Alone right: questions that no other run has right. "
        f"{_oracle(all_metrics, together)}"
    )
    return Table("Scores on the same questions", headers, rows), caption


def difference_table(pairs: Sequence[PairedRun], names: Sequence[str], clusters: str) -> Captioned:
    """Show each run minus the baseline; intervals resample `clusters` if there are enough."""
    several = len(pairs) > 1
    rows = tuple(
        (
            name,
            signed(pair.paired.accuracy),
            signed(pair.paired.exam_score),
            signed(pair.paired.points, Unit.POINTS),
            p_value(pair.paired.flips.p),
            *((p_value(pair.p_adjusted),) if several else ()),
        )
        for name, pair in zip(names[1:], pairs, strict=True)
    )
    headers = ("Run", "Accuracy", "Exam score", "Points", "p", *(("p Holm",) if several else ()))
    kinds = (difference.resampled for pair in pairs for difference in (pair.paired.accuracy, pair.paired.exam_score))
    caption = (
        "The run minus the baseline: percentage points, and points of an exam, in brackets 95 % intervals "
        f"({describe_resampling(kinds, 'paired bootstrap', clusters)}). p: McNemar's exact test, two-sided"
    )
    caption += ", and adjusted by Holm for all rows." if several else "."
    stars = tuple((row, 1, count_stars(pair.p_adjusted)) for row, pair in enumerate(pairs))
    return Table(f"Against {names[0]}", headers, rows, stars=stars), caption


def agreement(pairs: Sequence[PairedRun], names: Sequence[str]) -> Captioned:
    """Show how often each run and the baseline answer alike."""
    rows = tuple(
        (
            name,
            *map(str, _counts(pair.paired)),
            percent(pair.paired.either_right),
            percent(pair.paired.same_answer),
            NONE if pair.paired.kappa is None else coefficient(pair.paired.kappa),
        )
        for name, pair in zip(names[1:], pairs, strict=True)
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
    return Table(f"Agreement with {names[0]}", headers, rows), caption


def group_differences(
    name: str, baseline: str, facet: str, groups: Mapping[str, PairedGroup], clusters: str
) -> Captioned:
    """Show the differences of run `name` by groups of `facet`; intervals resample `clusters` if there are many."""
    rows = tuple(
        (
            label,
            str(group.paired.n),
            percent(group.paired.baseline_accuracy),
            percent(group.paired.baseline_accuracy + group.paired.accuracy.value),
            signed(group.paired.accuracy),
            *map(str, _counts(group.paired)[:2]),
            p_value(group.p_adjusted),
        )
        for label, group in groups.items()
    )
    headers = (facet.capitalize(), "n", "Baseline", "Run", "Difference", "Right to wrong", "Wrong to right", "p Holm")
    exam_counts = [
        group.paired.exams for group in groups.values() if group.paired.accuracy.resampled is Resampling.CLUSTERS
    ]
    kinds = {group.paired.accuracy.resampled for group in groups.values()}
    caption = f"Accuracy, percent, with 95 % intervals ({describe_resampling(kinds, 'paired bootstrap', clusters)})"
    if exam_counts and min(exam_counts) < FEW_CLUSTERS:
        caption += f"; rough if there are few, and one group is of {min(exam_counts)} {clusters}"
    caption += ". p: McNemar's, adjusted by Holm for this breakdown of all pairs."
    stars = tuple((row, 4, count_stars(group.p_adjusted)) for row, group in enumerate(groups.values()))
    return Table(f"{name} against {baseline}, by {facet}", headers, rows, stars=stars), caption


def flipped(flips: Sequence[Flipped], names: Sequence[str], limit: int) -> list[Captioned]:
    """Show the first `limit` flipped questions with every run's answer, and the caption; empty if none flipped."""
    if not flips:
        return []
    count = str(len(flips)) if len(flips) <= limit else f"first {limit} of {len(flips)}"
    rows = tuple(
        (flip.question, str(flip.gold), *(NONE if answer is None else str(answer) for answer in flip.answers))
        for flip in flips[:limit]
    )
    right = frozenset(
        (row, 2 + column)
        for row, flip in enumerate(flips[:limit])
        for column, answer in enumerate(flip.answers)
        if answer in (flip.gold, *flip.others)
    )
    caption = "Questions that some runs have right and others wrong, with each run's answer; right answers are marked."
    if len(flips) > limit:
        caption += " --json lists all."
    headers = ("Question", "Gold", *names)
    return [(Table(f"Flipped questions ({count})", headers, rows, best=right), caption)]


def verdict(pairs: Sequence[PairedRun], place: int, names: Sequence[str], clusters: str) -> str:
    """Write what may be said of the accuracy of pair `place`; its interval resamples `clusters` if there are enough."""
    name, pair = names[place + 1], pairs[place]
    accuracy, p = pair.paired.accuracy, pair.paired.flips.p
    difference = signed(accuracy)
    test = f"McNemar's p {equals(p)}"
    if len(pairs) > 1:
        test += f", {p_value(pair.p_adjusted)} after Holm"
    if accuracy.interval is None:
        test += f", no interval, because {why_none(accuracy.resampled, clusters)}"
    sentence = f"{name} {TOLD[pair.verdict]} {names[0]} in accuracy: {difference} percentage points, {test}."
    return sentence if pair.verdict != "not told apart" else f"{sentence} {_power(pair.paired)}".rstrip()


def _power(paired: Paired) -> str:
    """Say how small a difference these questions show, and how many the difference found would need, in a sentence."""
    difference, needed = (
        detectable_difference(paired.n, paired.flipped),
        questions_needed(paired.accuracy.value, paired.flipped),
    )
    if difference is None:
        return ""
    detectable = f"differences above {percent(difference)} points (80 % power)"
    ending = "." if needed is None else f"; this one needs {needed:,} questions."
    return f"With {paired.n:,} questions you will usually detect only {detectable}{ending}"


def _oracle(all_metrics: Sequence[Metrics], together: Complementarity) -> str:
    """Say what the runs have right together, in a sentence."""
    share = percent(together.any_right / together.n)
    gain = together.any_right - max(metrics.right for metrics in all_metrics)
    return (
        f"{together.any_right} questions ({share} %, the oracle) are right in at least one run, {gain} more than in "
        f"the best run; {together.all_right} are right in all, {together.none_right} in none."
    )


def _counts(paired: Paired) -> tuple[int, int, int, int]:
    flips = paired.flips
    return len(flips.right_to_wrong), len(flips.wrong_to_right), flips.both_right, flips.both_wrong
