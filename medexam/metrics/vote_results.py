"""What `metrics.json` holds of a run that asks each question several times, or in several orders of its options."""

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
