"""Verdicts: whether a verifier kept a question's passages, and whether these support its answer."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from medexam.distributions import WILSON, rate_interval
from medexam.predictions.evidence.kind import Figures, Kind
from medexam.predictions.evidence.passages import PassageFields
from medexam.questions import Gold
from medexam.tables import Captioned, Table, percent, with_interval


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class VerdictFields(PassageFields):
    """An answer with a verifier's verdict."""

    __slots__ = ()

    supported: bool | None = None
    """Whether the kept passages support the answer, as a verifier says; False too where none was kept. Left out of a
    line where nothing was verified or there was no answer."""


class Checked(Figures):
    """Questions whose answer was checked, with one verdict."""

    n: int
    withdrawn: int
    """Those whose answer was withdrawn; they enter no accuracy."""
    accuracy: float | None
    """Of those whose answer stands; None if there are none."""
    accuracy_interval: tuple[float, float] | None
    """Wilson's 95 % interval; None if there are none."""


class VerifiedMetrics(Figures):
    """What a verifier made of the passages, over the scored questions whose passages were judged."""

    n: int
    passages: int
    """That were judged."""
    kept: int
    none_kept: int
    """Questions without a kept passage."""
    supported: Checked
    unsupported: Checked


def _measure(answers: Sequence[tuple[VerdictFields, Gold]]) -> VerifiedMetrics | None:
    cases = [
        (prediction, gold)
        for prediction, gold in answers
        if prediction.supported is not None or (prediction.passages and _verdicts(prediction))
    ]
    if not cases:
        return None
    verdicts = [_verdicts(prediction) for prediction, _ in cases]
    return VerifiedMetrics(
        n=len(cases),
        passages=sum(map(len, verdicts)),
        kept=sum(map(sum, verdicts)),
        none_kept=sum(not any(question_verdicts) for question_verdicts in verdicts),
        supported=_checked([case for case in cases if case[0].supported is True]),
        unsupported=_checked([case for case in cases if case[0].supported is False]),
    )


def _verdicts(prediction: VerdictFields) -> list[bool]:
    return [passage.kept for passage in prediction.passages or () if passage.kept is not None]


def _checked(group: Sequence[tuple[VerdictFields, Gold]]) -> Checked:
    rights = [gold.accepts(prediction.answer) for prediction, gold in group if prediction.answer is not None]
    return Checked(
        n=len(group),
        withdrawn=len(group) - len(rights),
        accuracy=sum(rights) / len(rights) if rights else None,
        accuracy_interval=rate_interval(sum(rights), len(rights)),
    )


def _tables(figures: VerifiedMetrics, others: Collection[str]) -> Iterator[Captioned]:  # noqa: ARG001
    rows = tuple(
        (name, str(group.n), str(group.withdrawn), with_interval(percent(group.accuracy), group.accuracy_interval))
        for name, group in (("supported", figures.supported), ("unsupported", figures.unsupported))
    )
    drop_count = figures.passages - figures.kept
    share = f" ({percent(drop_count / figures.passages)} %)" if figures.passages else ""
    caption = (
        f"The verifier dropped {drop_count:,} of {figures.passages:,} passages{share}; none was left for "
        f"{figures.none_kept:,} of n = {figures.n:,} questions. Accuracy: percent of the answers that stand ({WILSON})."
    )
    yield Table("Answers by the verifier's verdict", ("Verdict", "n", "Withdrawn", "Accuracy"), rows), caption


VERDICTS = Kind(
    figures="evidence.verified",
    measure=_measure,
    tables=_tables,
    page=lambda prediction: {"supported": prediction.supported},
)
