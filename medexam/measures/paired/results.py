"""What a comparison of runs on the same questions holds: the field names, their units, and what None means.

Only data. A difference is always the other run's score minus the baseline's. Shares are fractions of 1.
"""

from typing import Literal

from medexam.frozen_model import FrozenModel
from medexam.measures.results import Interval, Resampling, Unit

Verdict = Literal["better", "worse", "not told apart"]
"""What may be said of the other run beside the baseline."""


class Difference(FrozenModel):
    """The other run's score minus the baseline's, in the unit of the score."""

    value: float
    interval: Interval | None
    """Paired bootstrap, 95 %."""
    resampled: Resampling = Resampling.CLUSTERS
    """What `interval` resamples, or why it is None."""

    @property
    def bounds(self) -> Interval | None:
        """The ends of the interval; of questions that all differ alike, the difference itself. None without one."""
        return (self.value, self.value) if self.resampled is Resampling.ALIKE else self.interval

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of 0; of questions that all differ alike, whether they differ.

        False if there is no interval for another reason.
        """
        return self.bounds is not None and (self.bounds[0] > 0 or self.bounds[1] < 0)


class Flips(FrozenModel):
    """How the answers of a run differ from those of a baseline; counts of questions that both scored."""

    right_to_wrong: int
    """The baseline alone has it right."""
    wrong_to_right: int
    """The other run alone has it right."""
    both_right: int
    both_wrong: int
    same_answer: float
    """Share of the questions to which both give the same answer, right or wrong; no answer is like no answer."""
    kappa: float | None
    """Cohen's kappa of the answers, where no answer is a category too: 1 where all agree, 0 if no more agree than
    by chance. None if both runs always give one and the same answer."""

    @property
    def n(self) -> int:
        """Questions that both runs scored."""
        return self.right_to_wrong + self.wrong_to_right + self.both_right + self.both_wrong

    @property
    def share(self) -> float:
        """Share of the questions that one of the two has right and the other has not."""
        return (self.right_to_wrong + self.wrong_to_right) / self.n


class PairedMeasure(FrozenModel):
    """One measure of a run beside the baseline's, on the questions that all compared runs have a score for."""

    n: int
    clusters: int
    """What the interval resamples: exams or whole questions; the questions themselves if nothing holds them."""
    baseline: float
    other: float
    difference: Difference
    p: float | None = None
    """Two-sided: McNemar's exact test of right and wrong answers (McNemar 1947), else a paired permutation test of
    whole questions. None for what follows from the same answers, such as points."""
    p_adjusted: float | None = None
    """`p` after Holm, over all pairs and measures, or over all pairs and groups of a facet."""
    verdict: Verdict = "not told apart"
    """What may be said of this measure alone, by the interval and `p_adjusted`."""
    flips: Flips | None = None
    """None unless answers are right or wrong."""
    unit: Unit = Unit.SHARE
