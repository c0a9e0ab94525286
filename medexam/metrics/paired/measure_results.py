"""What a comparison of two runs on the same tasks, answered in words, holds of one measure. Only data.

`paired_tasks.py` finds the numbers.
"""

from medexam.frozen_model import FrozenModel
from medexam.metrics.paired.results import Difference, Verdict


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
