"""Questions, golds, predictions, and the data sets and benchmarks that they come from."""

from medexam.benchmarks import find_benchmark
from medexam.datasets.selection import draw_lot
from medexam.metrics.audit import AuditItem

__all__ = ["AuditItem", "draw_lot", "find_benchmark"]
