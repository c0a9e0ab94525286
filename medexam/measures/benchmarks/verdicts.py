"""What may be said of a run beside another one, in a sentence: the same on the terminal, the page, MLflow and README.

A verdict needs the test and the interval, a difference over the noise of repeats, and the same result however the
replies are read. Where readings differ, the form of the replies decides, and the sentence has each.
"""

from collections.abc import Sequence
from typing import NamedTuple

from medexam.measures.benchmarks.measures import show_number, signed
from medexam.measures.benchmarks.paired import LEGIBLE, Pair, Paired
from medexam.measures.benchmarks.resampling import why_none
from medexam.measures.benchmarks.tables import name_measure
from medexam.measures.paired.pairs import Measured
from medexam.measures.paired.power import detectable_difference, questions_needed
from medexam.measures.paired.results import Difference, PairedMeasure, Verdict
from medexam.measures.results import Unit
from medexam.tables import equals, percent

NAMED = 4
"""Runs that a sentence names; of more it gives the number."""


class Case(NamedTuple):
    """One row of the table of what may be said."""

    results: frozenset[Verdict]
    """What the readings of the replies find: one verdict, or several."""
    over_noise: bool | None
    """Whether the difference is more than that of repeats; None: either way."""
    verdict: Verdict
    sentence: str


def _case(results: str, over_noise: bool | None, verdict: Verdict, sentence: str) -> Case:
    return Case(frozenset(results.split(", ")), over_noise, verdict, sentence)  # type: ignore[arg-type]


HOLDS = " So it is however the replies are read."
_NOISE = "{run} shows no difference from {baseline} in {measure} that is more than the noise of repeats: {figures}."
_FORM = "The form of the replies decides whether {run} differs from {baseline} in {measure}: {figures}; {views}."
CASES = (
    _case("better", True, "better", "{run} is better than {baseline} in {measure}: {figures}.{holds}"),
    _case("worse", True, "worse", "{run} is worse than {baseline} in {measure}: {figures}.{holds}"),
    _case(
        "not told apart",
        None,
        "not told apart",
        "{run} shows no difference from {baseline} in {measure}: {figures}.{power}",
    ),
    _case("better", False, "not told apart", _NOISE),
    _case("worse", False, "not told apart", _NOISE),
    _case("better, not told apart", None, "not told apart", _FORM),
    _case("worse, not told apart", None, "not told apart", _FORM),
    _case("better, worse", None, "not told apart", _FORM),
    _case("better, worse, not told apart", None, "not told apart", _FORM),
)
"""What may be said of a pair; each combination stands once."""


def find_case(pair: Pair, name: str | None = None) -> Case:
    """Find what may be said of a pair in a measure; None: in that which runs are known by, which has a noise floor."""
    measure = name or next(iter(pair.measures))
    results = frozenset(each.verdict for each in (pair.measures[measure], *pair.by_view(measure).values()))
    over_noise = pair.floor is None or pair.measures[measure] is not pair.first
    over_noise = over_noise or abs(pair.first.difference.value) > (pair.floor or 0.0)
    return next(case for case in CASES if case.results == results and case.over_noise in (None, over_noise))


def verdicts(paired: Paired) -> list[Verdict]:
    """Return what may be said of each pair in the measure that runs are known by."""
    return [find_case(pair).verdict for pair in paired.pairs]


def pair_sentences(paired: Paired, names: Sequence[str]) -> list[str]:
    """Write a sentence a pair on the first measure, and one on each other measure that tells the two apart."""
    several = len([each for pair in paired.pairs for each in pair.measures.values() if each.p is not None]) > 1
    sentences = []
    for name, pair in zip(names[1:], paired.pairs, strict=True):
        sentences += [
            _pair_sentence(pair, name, names[0], measure, paired.clusters, several)
            for measure in pair.measures
            if measure == paired.measure or find_case(pair, measure).results != {"not told apart"}
        ]
    return sentences


def measure_sentence(run: str, baseline: str, metric: str, measure: PairedMeasure, clusters: str) -> str:
    """Write what may be said of a pair in a metric of the user's own, of which nobody knows that more is better."""
    phrase = {"better": "is higher than", "worse": "is lower than"}.get(measure.verdict, "shows no difference from")
    return f"{run} {phrase} {baseline} in {metric}: {figures(measure, clusters, adjusted=True)}."


def _pair_sentence(pair: Pair, run: str, baseline: str, measure: str, clusters: str, several: bool) -> str:
    scores = pair.measures[measure]
    return find_case(pair, measure).sentence.format(
        run=run,
        baseline=baseline,
        measure=_in_sentence(measure),
        figures=figures(scores, clusters, adjusted=several),
        views=describe_views(pair, measure, adjusted=several),
        power=_power(scores),
        holds=HOLDS if pair.views else "",
    )


def describe_views(pair: Pair, name: str, *, adjusted: bool) -> str:
    """Write what each way to read the replies finds in a measure."""
    parts = []
    for view, measure in pair.by_view(name).items():
        where = f"{view} ({measure.n:,} questions)" if view == LEGIBLE else view
        difference = f"{signed(measure.difference, measure.unit)} (p {equals(_p(measure, adjusted=adjusted))})"
        parts.append(f"{where} {difference if measure.n else 'nothing'}")
    return ", ".join(parts)


def figures(measure: PairedMeasure, clusters: str, *, adjusted: bool) -> str:
    """Write both scores, the difference with its interval or why it has none, and the test."""
    scores = (show_number(each, measure.unit) for each in (measure.other, measure.baseline))
    shares = measure.unit is Unit.SHARE
    parts = [f"{' % against '.join(scores)} %" if shares else " against ".join(scores)]
    parts.append(signed(measure.difference, measure.unit) + (" percentage points" if shares else ""))
    test = "p" if measure.flips is None else "McNemar's p"
    parts.append(f"{test} {equals(_p(measure, adjusted=adjusted))}{' after Holm' if adjusted else ''}")
    if measure.difference.interval is None:
        parts.append(f"no interval, because {why_none(measure.difference.resampled, clusters)}")
    return ", ".join(parts)


def turn(pair: Pair) -> Pair:
    """Return the baseline beside the other run."""

    def turn_all(measures: Measured) -> Measured:
        return {name: _turn(measure) for name, measure in measures.items()}

    views = {name: turn_all(measures) for name, measures in pair.views.items()}
    return Pair(turn_all(pair.measures), views, pair.floor)


def _turn(measure: PairedMeasure) -> PairedMeasure:
    difference, turned = measure.difference, {"better": "worse", "worse": "better"}
    ends = difference.interval and (-difference.interval[1], -difference.interval[0])
    return measure.model_copy(
        update={
            "baseline": measure.other,
            "other": measure.baseline,
            "difference": Difference(value=-difference.value, interval=ends, resampled=difference.resampled),
            "verdict": turned.get(measure.verdict, measure.verdict),
        }
    )


_LEADS = {
    "best": "{first} is better than every other run here in {measure}; beside {next}, the next: {figures}.{holds}",
    "level": "{first} is first in {measure}; no difference from {level} is shown; beside {next}: {figures}.",
    "form": (
        "{first} is first in {measure}, but the form of the replies decides whether it differs from {form}; beside "
        "{next}: {figures}; {views}."
    ),
}
"""What is said of the run that is first among several others; of one other it is the sentence of the pair."""


def leader_sentence(paired: Paired, names: Sequence[str]) -> str:
    """Write what may be said of the first run, which has the highest score, beside all others."""
    turned = [turn(pair) for pair in paired.pairs]
    if len(turned) == 1:
        return _pair_sentence(turned[0], names[0], names[1], paired.measure, paired.clusters, several=False)
    cases = [find_case(pair) for pair in turned]
    form = [place for place, case in enumerate(cases) if len(case.results) > 1]
    level = [place for place, case in enumerate(cases) if case.verdict != "better" and place not in form]
    kind, places = ("level", level) if level else ("form", form) if form else ("best", range(len(turned)))
    closest = max(places, key=lambda place: turned[place].first.baseline)
    return _LEADS[kind].format(
        first=names[0],
        next=names[1 + closest],
        measure=_in_sentence(paired.measure),
        level=_others([names[1 + place] for place in level], len(turned)),
        form=_others([names[1 + place] for place in form], len(turned)),
        figures=figures(turned[closest].first, paired.clusters, adjusted=True),
        views=describe_views(turned[closest], paired.measure, adjusted=True),
        holds=HOLDS if any(pair.views for pair in turned) else "",
    )


def _p(measure: PairedMeasure, *, adjusted: bool) -> float:
    p = measure.p_adjusted if adjusted else measure.p
    return 1.0 if p is None else p


def join(names: Sequence[str]) -> str:
    """Write names with commas and an `and`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _others(names: Sequence[str], total: int) -> str:
    return join(names) if len(names) <= NAMED else f"{len(names)} of the {total} others"


def _in_sentence(measure: str) -> str:
    name = name_measure(measure)
    return name[0].lower() + name[1:] if name[1:2].islower() else name


def _power(measure: PairedMeasure) -> str:
    """Say how small a difference these questions show, and how many the difference found would need, in a sentence."""
    if measure.flips is None:
        return ""
    difference = detectable_difference(measure.n, measure.flips.share)
    needed = questions_needed(measure.difference.value, measure.flips.share)
    if difference is None or (needed is not None and needed <= measure.n):
        return ""
    detectable = f"differences above {percent(difference)} points (80 % power)"
    ending = "." if needed is None else f"; this one needs {needed:,} questions."
    return f" With {measure.n:,} questions you will usually detect only {detectable}{ending}"
