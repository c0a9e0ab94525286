"""What a comparison of two runs on the same questions holds: the field names, their units, and what None means.

Only data; `pairs.py` and `measures.py` find the numbers. A difference is always the other run's score minus the
baseline's.
"""

from typing import Literal

from medexam.frozen_model import FrozenModel
from medexam.metrics.results import Interval, Resampling

Verdict = Literal["better", "worse", "not told apart"]
"""What may be said of the other run's accuracy beside the baseline's."""


class Flips(FrozenModel):
    """How the answers of a run differ from those of a baseline on the same questions.

    Each group of keys stands in the order of the questions.
    """

    right_to_wrong: tuple[str, ...]
    """Keys of the questions that the baseline alone has right."""
    wrong_to_right: tuple[str, ...]
    """Keys of the questions that the other run alone has right."""
    both_right: int
    both_wrong: int
    p: float
    """McNemar's exact test, two-sided: how likely flips this uneven are if either way were equally likely; 1 where
    nothing flips (McNemar 1947, "Note on the sampling error of the difference between correlated proportions")."""

    @property
    def n(self) -> int:
        """Questions that both runs scored."""
        return len(self.right_to_wrong) + len(self.wrong_to_right) + self.both_right + self.both_wrong


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


class Paired(FrozenModel):
    """A run beside the baseline on questions that both scored. Fractions of 1 unless they say otherwise."""

    n: int
    exams: int
    """Exams that the questions come from; the questions themselves if no exam holds them together."""
    baseline_accuracy: float
    accuracy: Difference
    exam_score: Difference
    points: Difference
    """Points of an exam, averaged over the exams."""
    flips: Flips
    either_right: float
    """Share of the questions that at least one of the two has right."""
    same_answer: float
    """Share of the questions to which both give the same answer, right or wrong; no answer is like no answer."""
    kappa: float | None
    """Cohen's kappa of the answers, where no answer is a category too: 1 where all agree, 0 if no more agree than
    by chance. None if both runs always give one and the same answer."""

    @property
    def flipped(self) -> float:
        """Share of the questions that one of the two has right and the other has not."""
        return (len(self.flips.right_to_wrong) + len(self.flips.wrong_to_right)) / self.n


class Complementarity(FrozenModel):
    """What several runs have right together; counts of questions."""

    n: int
    any_right: int
    """The oracle: questions that at least one run has right."""
    all_right: int
    none_right: int
    alone_right: tuple[int, ...]
    """Questions that a run has right and all the others have not, in the order of the runs."""


class PairedMeasure(FrozenModel):
    """One measure of a run beside the baseline's, over the tasks that all compared runs have a score for.

    Fractions of 1.
    """

    n: int
    """Tasks."""
    questions: int
    """Whole questions that the tasks pose: what the interval resamples and what the test flips."""
    baseline: float
    """The baseline's mean."""
    other: float
    """The other run's mean."""
    difference: Difference
    """The other's mean minus the baseline's; its interval resamples whole questions."""
    p: float
    """Paired permutation test, two-sided: how likely a difference this large is if each question's two sets of scores
    might as well have been exchanged."""
    p_adjusted: float
    """`p` after Holm over all pairs and measures, or over all pairs and groups."""
    verdict: Verdict
    """What may be said of this measure, by the interval and `p_adjusted`."""
