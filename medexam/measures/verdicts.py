"""What may be said of a run beside another one, in a sentence: the same on the terminal, the page, MLflow and README.

A verdict needs the test and the interval, a difference over the noise of repeats, and the same result however the
replies are read. Where readings differ, the form of the replies decides, and the sentence has each.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from medexam.measures.comparing import LEGIBLE, Pair, Paired
from medexam.measures.margins import detectable_difference, questions_needed
from medexam.measures.paired import PairedMeasure, Verdict
from medexam.measures.results import Unit
from medexam.measures.shown import name_measure, show_number, signed, why_none
from medexam.tables import equals, percent

NAMED = 4
"""Runs that a sentence names; of more it gives the number."""


class Case(NamedTuple):
    """One row of the table of what may be said."""

    result: Verdict | None
    """What all readings of the replies find; None: they do not find the same."""
    over_noise: bool | None
    """Whether the difference is more than that of repeats; None: either way."""
    verdict: Verdict
    sentence: str


HOLDS = " So it is however the replies are read."
_NOISE = "{run} shows no difference from {baseline} in {measure} that is more than the noise of repeats: {figures}."
_FORM = "The form of the replies decides whether {run} differs from {baseline} in {measure}: {figures}; {views}."
_ALIKE: Verdict = "not told apart"
CASES = (
    Case("better", True, "better", "{run} is better than {baseline} in {measure}: {figures}.{holds}"),
    Case("worse", True, "worse", "{run} is worse than {baseline} in {measure}: {figures}.{holds}"),
    Case(_ALIKE, None, _ALIKE, "{run} shows no difference from {baseline} in {measure}: {figures}.{power}"),
    Case("better", False, _ALIKE, _NOISE),
    Case("worse", False, _ALIKE, _NOISE),
    Case(None, None, _ALIKE, _FORM),
)
"""What may be said of a pair; each combination stands once."""
_LEADS = {
    "best": "{first} is better than every other run here in {measure}; beside {next}, the next: {figures}.{holds}",
    "level": "{first} is first in {measure}; no difference from {level} is shown; beside {next}: {figures}.",
    "form": (
        "{first} is first in {measure}, but the form of the replies decides whether it differs from {form}; beside "
        "{next}: {figures}; {views}."
    ),
}
"""What is said of the run that is first among several others; of one other it is the sentence of the pair."""


def find_case(pair: Pair, name: str | None = None) -> Case:
    """Find what may be said of a pair in a measure; None: in that which runs are known by, which has a noise floor."""
    measure = name or next(iter(pair.measures))
    results = {each.verdict for each in (pair.measures[measure], *pair.by_view(measure).values())}
    result = results.pop() if len(results) == 1 else None
    over_noise = pair.floor is None or pair.measures[measure] is not pair.first
    over_noise = over_noise or abs(pair.first.difference.value) > (pair.floor or 0.0)
    return next(case for case in CASES if case.result == result and case.over_noise in (None, over_noise))


def pair_sentences(paired: Paired, names: Sequence[str]) -> list[str]:
    """Write a sentence a pair on the first measure, and one on each other measure that tells the two apart."""
    several = len([each for pair in paired.pairs for each in pair.measures.values() if each.p is not None]) > 1
    return [
        _pair_sentence(pair, name, names[0], measure, paired.clusters, several)
        for name, pair in zip(names[1:], paired.pairs, strict=True)
        for measure in pair.measures
        if measure == paired.measure or find_case(pair, measure).result != _ALIKE
    ]


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
        difference = f"{signed(measure.difference, measure.unit)} (p {_p(measure, adjusted=adjusted)})"
        parts.append(f"{where} {difference if measure.n else 'nothing'}")
    return ", ".join(parts)


def figures(measure: PairedMeasure, clusters: str, *, adjusted: bool) -> str:
    """Write both scores, the difference with its interval or why it has none, and the test."""
    scores = (show_number(each, measure.unit) for each in (measure.other, measure.baseline))
    shares = measure.unit is Unit.SHARE
    parts = [f"{' % against '.join(scores)} %" if shares else " against ".join(scores)]
    parts.append(signed(measure.difference, measure.unit) + (" percentage points" if shares else ""))
    test = "p" if measure.flips is None else "McNemar's p"
    parts.append(f"{test} {_p(measure, adjusted=adjusted)}{' after Holm' if adjusted else ''}")
    if measure.difference.interval is None:
        parts.append(f"no interval, because {why_none(measure.difference.resampled, clusters)}")
    return ", ".join(parts)


def turn(pair: Pair) -> Pair:
    """Return the baseline beside the other run."""
    measures, *views = (
        {name: _turn(measure) for name, measure in each.items()} for each in (pair.measures, *pair.views.values())
    )
    return replace(pair, measures=measures, views=dict(zip(pair.views, views, strict=True)))


def _turn(measure: PairedMeasure) -> PairedMeasure:
    difference, turned = measure.difference, {"better": "worse", "worse": "better"}
    ends = difference.interval and (-difference.interval[1], -difference.interval[0])
    update = {
        "baseline": measure.other,
        "other": measure.baseline,
        "difference": difference.model_copy(update={"value": -difference.value, "interval": ends}),
        "verdict": turned.get(measure.verdict, measure.verdict),
    }
    return measure.model_copy(update=update)


def leader_sentence(paired: Paired, names: Sequence[str]) -> str:
    """Write what may be said of the first run, which has the highest score, beside all others."""
    turned = [turn(pair) for pair in paired.pairs]
    if len(turned) == 1:
        return _pair_sentence(turned[0], names[0], names[1], paired.measure, paired.clusters, several=False)
    cases = [find_case(pair) for pair in turned]
    form = [place for place, case in enumerate(cases) if case.result is None]
    level = [place for place, case in enumerate(cases) if case.verdict != "better" and place not in form]
    kind, places = ("level", level) if level else ("form", form) if form else ("best", range(len(turned)))
    closest = max(places, key=lambda place: turned[place].first.baseline)
    others = [names[1 + place] for place in places]
    return _LEADS[kind].format(
        first=names[0],
        next=names[1 + closest],
        measure=_in_sentence(paired.measure),
        **{kind: join(others) if len(others) <= NAMED else f"{len(others)} of the {len(turned)} others"},
        figures=figures(turned[closest].first, paired.clusters, adjusted=True),
        views=describe_views(turned[closest], paired.measure, adjusted=True),
        holds=HOLDS if any(pair.views for pair in turned) else "",
    )


def _p(measure: PairedMeasure, *, adjusted: bool) -> str:
    p = measure.p_adjusted if adjusted else measure.p
    return equals(1.0 if p is None else p)


def join(names: Sequence[str]) -> str:
    """Write names with commas and an `and`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


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
