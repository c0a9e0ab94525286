"""What `spec.json` keeps of a stopping rule: every look at a comparison, and how it ended."""

from dataclasses import dataclass

from medexam.tables import decimal

RAN_OUT = "questions ran out"
ALL_ENDED = "all comparisons ended"


@dataclass(frozen=True, kw_only=True)
class InterimLook:
    """One look at a run beside its baseline."""

    asked: int
    """Questions that both were asked by then, in the rule's order."""
    n: int
    """Those that both have scored."""
    gained: int
    """Those that only the run has right."""
    lost: int
    """Those that only the baseline has right."""
    better: float
    """E-value against the run being no better; `worse` and `small` as in `Evidence`."""
    worse: float
    small: float
    interval: tuple[float, float]
    """Confidence sequence of the difference of accuracy, in fractions of 1."""


@dataclass(frozen=True, kw_only=True)
class StopRecord:
    """How far a run was asked by a rule, and why no further."""

    difference: float
    """Percentage points."""
    power: float
    level: float
    seed: int
    baseline: str
    """Id of the run that this one is compared with; its own if it is the baseline."""
    questions: int
    """Those that the spec selects."""
    asked: int
    """Those that the rule has had asked."""
    ended: str | None
    """An `Ending`, `questions ran out`, of a baseline `all comparisons ended`; None while more is to be asked."""
    looks: tuple[InterimLook, ...] = ()
    """Empty for the baseline."""

    def describe(self) -> str:
        """Describe it in a sentence for readers of the run's scores."""
        rule = f"its rule ({decimal(self.difference)} points, power {self.power:g})"
        progress = f"{self.asked:,} of {self.questions:,} questions"
        if self.ended is None:
            return f"has asked {progress} by {rule}, which has not ended: run its spec again to continue it"
        if self.asked == self.questions and not self.is_decided:
            return f"has asked all {self.questions:,} questions by {rule}: the paired test on all of them decides"
        if not self.looks:
            return f"stopped after {progress} by {rule}: every comparison with it had ended"
        low, high = (decimal(100 * bound) for bound in self.looks[-1].interval)
        finding = {
            "better": f"better than {self.baseline}",
            "worse": f"worse than {self.baseline}",
            "no difference": f"no difference from {self.baseline} of {decimal(self.difference)} points or more",
        }[self.ended]
        return (
            f"stopped after {progress} by {rule}: {finding}; the difference lies in [{low}, {high}] points (confidence "
            "sequence)"
        )

    @property
    def is_decided(self) -> bool:
        """Whether the rule itself decided the comparison of this run."""
        return bool(self.looks) and self.ended not in (None, RAN_OUT)
