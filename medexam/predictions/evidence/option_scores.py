"""Scores of the options, and how they were read: calibration, position prior and abstention."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from medexam.distributions import WILSON
from medexam.predictions.core import CorePrediction, Number
from medexam.predictions.evidence.kind import Kind
from medexam.predictions.evidence.option_statistics import OptionScoreMetrics, normalise_scores, option_score_metrics
from medexam.tables import Captioned, Table, percent, six_digits, with_interval

_VALUES = ("expected_calibration_error", "brier_score", "label_mass", "flip_rate", "tied")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class OptionScoreFields(CorePrediction):
    """An answer with the scores of its options."""

    __slots__ = ()

    option_scores: dict[int, float] | None = None
    """Printed number of each option -> its score, the higher the likelier; None where options were not scored."""
    score_unit: str | None = None
    """The unit of `option_scores`, such as `nats per token`."""
    score_norm: str | None = None
    """What a score was divided by or compared with; see docs/protocol.md."""
    tied: Number | None = None
    """How many options share the best score: 1 where one option is ahead. Of tied options the first is chosen."""
    label_mass: float | None = None
    """Probability that the next token is any of the option numbers, 0 to 1; None where no numbers were read."""
    order_scores: tuple[tuple[float, ...], ...] | None = None
    """One row for each of `orders`: the scores in the order in which the options were shown. In a line without
    `orders`, row `r` shows first the option that stands at place `r` in the exam, and then those after it. None where
    only the exam's order was shown."""
    read_by: str | None = None
    """How the log-probabilities were read: `echo`, `trie` or `label`; None where none were."""
    read_why: str | None = None
    """Why they were read that way; None where none were."""

    @property
    def option_probabilities(self) -> dict[int, float] | None:
        """Printed number of each option -> its share of the probability; None where options were not scored."""
        return None if self.option_scores is None else normalise_scores(self.option_scores)

    def scores_of(self, numbers: Sequence[int]) -> list[float | None] | None:
        """List the scores of these options; None where options were not scored."""
        scores = self.option_scores
        return None if scores is None else [scores.get(number) for number in numbers]


@dataclass(frozen=True)
class OptionScores:
    """The scores of a question's options as a program gives them; the fields are those of `OptionScoreFields`."""

    option_scores: dict[int, float]
    score_unit: str
    score_norm: str | None = None
    read_by: str | None = None
    read_why: str | None = None
    label_mass: float | None = None
    order_scores: tuple[tuple[float, ...], ...] | None = None
    tied: int = field(init=False)

    def __post_init__(self) -> None:
        scores = list(self.option_scores.values())
        object.__setattr__(self, "tied", scores.count(max(scores)))


def _tables(figures: OptionScoreMetrics, others: Collection[str]) -> Iterator[Captioned]:
    yield _calibration(figures)
    # Shares of votes say no more of places than the table of the orders does.
    if figures.by_shown_position or "orders" not in others:
        yield _position(figures)
    yield _abstention(figures)


def _headline(figures: OptionScoreMetrics) -> Iterator[tuple[str, str]]:
    if figures.label_mass is not None:
        yield "Label mass, %", percent(figures.label_mass)
    if figures.flip_rate is not None:
        yield "Flip rate over the orders, %", percent(figures.flip_rate)
    yield "Questions with tied options", str(figures.tied)


def _calibration(figures: OptionScoreMetrics) -> Captioned:
    rows = tuple(
        (
            f"{100 * part.low:.0f} to {100 * part.high:.0f}",
            str(part.n),
            percent(part.mean_confidence),
            with_interval(percent(part.accuracy), part.accuracy_interval),
        )
        for part in figures.reliability
        if part.n
    )
    caption = (
        f"ECE {percent(figures.expected_calibration_error)} %, Brier score {figures.brier_score:.3f} (0 to 2), "
        f"n = {figures.n}. Confidence: the likeliest option's share of the probability, percent. "
        f"Accuracy: how often that option is right, with a 95 % interval ({WILSON})."
    )
    return Table("Calibration", ("Confidence", "n", "Mean confidence", "Accuracy"), rows), caption


def _position(figures: OptionScoreMetrics) -> Captioned:
    rows = tuple(
        (str(part.position), str(part.n), percent(part.mean_probability), percent(part.chosen), percent(part.gold))
        for part in figures.positions
    )
    if figures.by_shown_position:
        caption = (
            "Percent, averaged over all orders of the options that were shown. Over cyclic orders every option is "
            "once at every place, so its content cancels out."
        )
    else:
        caption = "Percent of the questions that have the number, in the exam's own order."
    if figures.flip_rate is not None:
        caption += (
            f" Flip rate, the questions whose choice is not the same in all orders: {percent(figures.flip_rate)} %."
        )
    header = "Place shown" if figures.by_shown_position else "Number"
    return Table("Position", (header, "n", "Mean probability", "Chosen", "Right option"), rows), caption


def _abstention(figures: OptionScoreMetrics) -> Captioned:
    rows = tuple(
        (
            f"{100 * point.threshold:.0f}",
            percent(point.answered_ratio),
            str(point.right),
            str(point.wrong),
            percent(point.accuracy),
            percent(point.exam_score),
        )
        for point in figures.abstention
    )
    headers = ("Blank below", "Answered", "Right", "Wrong", "Accuracy", "Exam score")
    best = next(row for row, point in enumerate(figures.abstention) if point.threshold == figures.best_threshold)
    caption = (
        "Percent. What the run would score if it left blank the questions of less confidence; accuracy is that of the "
        "answered ones. The best exam score is stressed; chosen on these same questions, it is optimistic."
    )
    return Table("Abstention", headers, rows, best=frozenset({(best, headers.index("Exam score"))})), caption


def _page(prediction: OptionScoreFields) -> dict[str, Any]:
    scores = prediction.option_scores
    return {
        "scores": None if scores is None else [[number, six_digits(score)] for number, score in scores.items()],
        "score_unit": prediction.score_unit,
        "score_norm": prediction.score_norm,
    }


OPTION_SCORES = Kind(
    figures="option_scores",
    measure=option_score_metrics,
    tables=_tables,
    headline=_headline,
    values=lambda figures: {name: getattr(figures, name) for name in _VALUES},
    columns={
        "option_scores": "[double]",
        **dict.fromkeys(("score_unit", "score_norm"), "string"),
        "label_mass": "double",
        "tied": "int32",
        **dict.fromkeys(("read_by", "read_why"), "string"),
    },
    cells=lambda prediction, item: {"option_scores": prediction.scores_of(getattr(item, "option_numbers", ()))},
    page=_page,
)
