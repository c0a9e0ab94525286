"""What `metrics.json` holds of a run that asks a question several times, in several orders, or scores its options."""

from medexam.frozen_model import FrozenModel


class VotePoint(FrozenModel):
    """How a run would score with `samples` replies to each question."""

    samples: int
    accuracy: float
    """Of the commonest answer among the first `samples` replies, of equals the first; no answer is not right."""
    accuracy_interval: tuple[float, float] | None
    """Wilson's 95 % interval."""
    pass_at: float
    """pass@k: how likely one of `samples` replies is right, over all choices of replies (Chen et al. 2021)."""


class VoteMetrics(FrozenModel):
    """What several replies to each question tell, over the scored questions that have votes."""

    samples: int
    """Replies to a question."""
    n: int
    agreement: float
    """The winner's share of the replies, averaged over the questions."""
    unanimous: float
    """Share of the questions whose replies all give the same answer."""
    no_answer: float
    """Share of the replies without a legal answer."""
    curve: tuple[VotePoint, ...]
    """From one reply to all of them."""


class MemberScore(FrozenModel):
    """One member of an ensemble, on the questions of the ensemble."""

    accuracy: float
    """No answer is not right."""
    accuracy_interval: tuple[float, float] | None
    """Wilson's 95 % interval."""
    same: float
    """Share of the questions to which it gives the ensemble's answer."""


class EnsembleMetrics(FrozenModel):
    """What the members of an ensemble answered, over the scored questions."""

    n: int
    members: tuple[MemberScore, ...]
    """In the order of the spec."""
    unanimous: float
    """Share of the questions to which all members give the same legal answer."""
    right_in_any: float
    """Share of the questions that at least one member answers rightly."""


class PlaceCount(FrozenModel):
    """How often the option in one place was chosen, over all orders whose answer is legal."""

    place: int
    """From 1, as shown."""
    chosen: float
    """Share of the orders whose answer stands there."""
    right: float
    """Share of the orders whose right option stands there."""


class OrderMetrics(FrozenModel):
    """What several orders of the options tell, over the scored questions that were shown in several."""

    n: int
    orders: int
    """The most orders of a question."""
    answered: int
    """Orders of all questions whose answer is legal."""
    places: tuple[PlaceCount, ...]
    chi_square: float | None
    """Stuart's and Maxwell's test that each place is chosen as often as the right option stands there, with questions
    as clusters; None if every answer is right, so that there is nothing to test."""
    degrees: int
    """Degrees of freedom of `chi_square`."""
    p: float | None
    """Its p-value; None without the test."""
    single_accuracy: float
    """Accuracy of one order, averaged over the orders of a question; no answer is not right."""
    consistent: float
    """Share of the questions to which all orders give the same legal answer."""
    right_in_all: float
    """Share of the questions that are answered rightly in every order."""
    right_in_all_interval: tuple[float, float] | None
    """Wilson's 95 % interval."""
    right_in_any: float
    """Share of the questions that are answered rightly in at least one order."""


class ReliabilityBin(FrozenModel):
    """The questions whose confidence lies above `low` and not above `high`."""

    low: float
    high: float
    n: int
    mean_confidence: float | None
    """None if `n` is 0."""
    accuracy: float | None
    """Share of the questions whose likeliest option is right; None if `n` is 0."""
    accuracy_interval: tuple[float, float] | None
    """Wilson's 95 % interval of `accuracy`; None if `n` is 0."""


class PositionShare(FrozenModel):
    """What one position draws, over the questions that have it."""

    position: int
    """The printed number, or the place in the order shown, from 1; see `OptionScoreMetrics.by_shown_position`."""
    n: int
    """Questions that have this position."""
    mean_probability: float
    """Share of the probability that its options get."""
    chosen: float
    """Share of the questions (of their orders, where several were shown) whose likeliest option stands there."""
    gold: float
    """Share of the questions (of their orders, where several were shown) whose right option stands there."""


class AbstentionPoint(FrozenModel):
    """How the run would score if it left blank every question whose confidence is below `threshold`."""

    threshold: float
    answered_ratio: float
    """Share of the questions that are answered."""
    right: int
    wrong: int
    accuracy: float | None
    """`right / (right + wrong)`; None if nothing is answered."""
    exam_score: float
    """`(right - wrong / 3) / n`: an unanswered question counts 0. From -1/3 to 1."""


class OptionScoreMetrics(FrozenModel):
    """What the stored option scores tell, over the questions whose prediction has them and did not fail.

    The option that is judged is the likeliest one, the first of equals, even where the program abstained. Its share of
    the probability (the softmax of the scores) is the question's confidence.
    """

    n: int
    """Questions with option scores, answered or not."""
    expected_calibration_error: float
    """Mean distance between accuracy and mean confidence over the bins of `reliability`, weighted by their questions
    (Guo et al. 2017, "On calibration of modern neural networks")."""
    brier_score: float
    """Mean over the questions of the sum over the options of (probability - [right option])^2, from 0 to 2 (Brier
    1950, "Verification of forecasts expressed in terms of probability")."""
    reliability: tuple[ReliabilityBin, ...]
    """Ten bins of equal width, from 0 to 1."""
    label_mass: float | None
    """Mean probability that the next token is any of the option numbers; None if no numbers were read."""
    by_shown_position: bool
    """Whether `positions` are places in the order shown, averaged over all orders, so that what the options say
    cancels out. Otherwise they are the printed numbers, in the one order of the exam."""
    positions: tuple[PositionShare, ...]
    """From the first position to the last."""
    tied: int
    """Questions in which more than one option shared the best score."""
    flip_rate: float | None
    """Share of the questions that were shown in several orders in which not all orders choose the same option; None
    where only the exam's order was shown."""
    abstention: tuple[AbstentionPoint, ...]
    """Thresholds 0.00, 0.05, ... 0.95."""
    best_threshold: float
    """The threshold of the highest exam score, the lowest one of equals. It is chosen on the questions that it is
    scored on, so its exam score is optimistic: choose it on other questions before it is compared with anything."""
