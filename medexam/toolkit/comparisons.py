"""Further parts of a comparison: what they are found from, what they show, and how differences are written."""

from medexam.benchmarks.measures import signed
from medexam.benchmarks.paired import FEW_CLUSTERS
from medexam.benchmarks.resampling import describe_resampling, why_none
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection, Finder
from medexam.metrics.paired.measures import NO_DIFFERENCE
from medexam.metrics.paired.pairs import ALPHA, mcnemar_p
from medexam.metrics.paired.results import Difference

__all__ = [
    "ALPHA",
    "FEW_CLUSTERS",
    "NO_DIFFERENCE",
    "ComparisonScope",
    "ComparisonSection",
    "Difference",
    "Finder",
    "describe_resampling",
    "mcnemar_p",
    "signed",
    "why_none",
]
