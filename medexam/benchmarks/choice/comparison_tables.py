"""Tables and sentences of runs on the same exams: scores, differences, agreement, breakdowns, flipped questions.

Each table has a caption that says how to read it.
"""

from collections.abc import Mapping, Sequence

from medexam.benchmarks.paired import FEW_CLUSTERS, TOLD, Flipped, Group, Pair, signed
from medexam.benchmarks.resampling import describe_resampling, why_none
from medexam.formatting import NONE, coefficient, decimal, equals, p_value, percent, with_interval
from medexam.metrics import Metrics
from medexam.metrics.paired.power import detectable_difference, questions_needed
from medexam.metrics.paired.results import Complementarity, Paired
from medexam.metrics.results import Resampling
from medexam.tables import Captioned, Table


def scores(all_metrics: Sequence[Metrics], together: Complementarity, names: Sequence[str]) -> Captioned:
    """Each run's scores on the same questions."""
    rows = tuple(
        (
            name,
            str(metrics.right),
            with_interval(percent(metrics.accuracy), metrics.accuracy_interval),
            percent(metrics.exam_score),
            decimal(metrics.points),
            percent(metrics.unanswered_ratio),
            str(alone),
        )
        for name, metrics, alone in zip(names, all_metrics, together.alone_right, strict=True)
    )
    chance = all_metrics[0].chance_accuracy
    headers = ("Run", "Right", "Accuracy", "Exam score", "Points", "No answer", "Alone right")
    caption = (
        f"n = {together.n} for every run; the first is the baseline. Percent of n, with Wilson's 95 % "
        "interval of each run on its own: overlapping ones do not say that runs are alike. Points: 3 right - wrong per "
        f"exam. A uniform choice has {percent(chance)} % right. Alone right: questions that no other run has right. "
        f"{_oracle(all_metrics, together)}"
    )
    return Table("Scores on the same questions", headers, rows), caption


def differences(pairs: Sequence[Pair], names: Sequence[str], clusters: str) -> Captioned:
    """Each run minus the baseline; intervals resample `clusters` if there are enough."""
    several = len(pairs) > 1
    rows = tuple(
        (
            name,
            signed(pair.paired.accuracy, 100),
            signed(pair.paired.exam_score, 100),
            signed(pair.paired.points, 1),
            p_value(pair.paired.flips.p),
            *((p_value(pair.p_adjusted),) if several else ()),
        )
        for name, pair in zip(names[1:], pairs, strict=True)
    )
    headers = ("Run", "Accuracy", "Exam score", "Points", "p", *(("p Holm",) if several else ()))
    ways = (each.resampled for pair in pairs for each in (pair.paired.accuracy, pair.paired.exam_score))
    caption = (
        "The run minus the baseline: percentage points, and points of an exam, in brackets 95 % intervals "
        f"({describe_resampling(ways, 'paired bootstrap', clusters)}). p: McNemar's exact test, two-sided"
    )
    caption += ", and adjusted by Holm for all rows." if several else "."
    return Table(f"Against {names[0]}", headers, rows), caption


def agreement(pairs: Sequence[Pair], names: Sequence[str]) -> Captioned:
    """How often each run and the baseline answer alike."""
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
        "of the two has right. Same answer: percent, right or wrong. Kappa: Cohen's, of the answers, 0 where chance "
        "explains them."
    )
    return Table(f"Agreement with {names[0]}", headers, rows), caption


def breakdown(name: str, baseline: str, what: str, groups: Mapping[str, Group], clusters: str) -> Captioned:
    """The differences of the run called `name` by groups of `what`; intervals resample `clusters` if there are many."""
    rows = tuple(
        (
            label,
            str(group.paired.n),
            percent(group.paired.baseline_accuracy),
            percent(group.paired.baseline_accuracy + group.paired.accuracy.value),
            signed(group.paired.accuracy, 100),
            *map(str, _counts(group.paired)[:2]),
            p_value(group.p_adjusted),
        )
        for label, group in groups.items()
    )
    headers = (what.capitalize(), "n", "Baseline", "Run", "Difference", "Right to wrong", "Wrong to right", "p Holm")
    drawn = [group.paired.exams for group in groups.values() if group.paired.accuracy.resampled is Resampling.CLUSTERS]
    ways = {group.paired.accuracy.resampled for group in groups.values()}
    caption = f"Accuracy, percent, with 95 % intervals ({describe_resampling(ways, 'paired bootstrap', clusters)})"
    if drawn and min(drawn) < FEW_CLUSTERS:
        caption += f"; rough where there are few, and one group is of {min(drawn)} {clusters}"
    caption += ". p: McNemar's, adjusted by Holm for this breakdown of all pairs."
    return Table(f"{name} against {baseline}, by {what}", headers, rows), caption


def flipped(found: Sequence[Flipped], names: Sequence[str], shown: int) -> list[Captioned]:
    """The first `shown` flipped questions with every run's answer, and the caption; empty if none flipped."""
    if not found:
        return []
    count = str(len(found)) if len(found) <= shown else f"first {shown} of {len(found)}"
    rows = tuple(
        (each.question, str(each.gold), *(NONE if answer is None else str(answer) for answer in each.answers))
        for each in found[:shown]
    )
    right = frozenset(
        (row, 2 + at)
        for row, each in enumerate(found[:shown])
        for at, answer in enumerate(each.answers)
        if answer in (each.gold, *each.others)
    )
    caption = (
        "Questions that some runs have right and others have not, with each run's answer, the right ones stressed."
    )
    if len(found) > shown:
        caption += " --json lists all."
    headers = ("Question", "Gold", *names)
    return [(Table(f"Flipped questions ({count})", headers, rows, best=right), caption)]


def verdict(pairs: Sequence[Pair], at: int, names: Sequence[str], clusters: str) -> str:
    """What may be said of the accuracy of pair `at`; its interval resamples `clusters` if there are enough."""
    name, pair = names[at + 1], pairs[at]
    accuracy, p = pair.paired.accuracy, pair.paired.flips.p
    difference = signed(accuracy, 100)
    test = f"McNemar's p {equals(p)}"
    if len(pairs) > 1:
        test += f", {p_value(pair.p_adjusted)} after Holm"
    if accuracy.interval is None:
        test += f", no interval, for {why_none(accuracy.resampled, clusters)}"
    told = f"{name} {TOLD[pair.verdict]} {names[0]} in accuracy: {difference} percentage points, {test}."
    return told if pair.verdict != "not told apart" else f"{told} {_power(pair.paired)}".rstrip()


def _power(paired: Paired) -> str:
    """How small a difference these questions show, and how many the difference found would need, in a sentence."""
    shown, needed = (
        detectable_difference(paired.n, paired.flipped),
        questions_needed(paired.accuracy.value, paired.flipped),
    )
    if shown is None:
        return ""
    said = f"{paired.n:,} questions show a difference of {percent(shown)} four times in five"
    return f"{said}." if needed is None else f"{said}; this one needs {needed:,}."


def _oracle(all_metrics: Sequence[Metrics], together: Complementarity) -> str:
    """What the runs have right together, in a sentence."""
    share = percent(together.any_right / together.n)
    more = together.any_right - max(metrics.right for metrics in all_metrics)
    return (
        f"{together.any_right} questions ({share} %, the oracle) are right in at least one run, {more} more than in "
        f"the run with the most; {together.all_right} are right in all, {together.none_right} in none."
    )


def _counts(paired: Paired) -> tuple[int, int, int, int]:
    flips = paired.flips
    return len(flips.right_to_wrong), len(flips.wrong_to_right), flips.both_right, flips.both_wrong
