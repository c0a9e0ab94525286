"""Questions, golds, predictions, and the data sets and benchmarks that they come from."""

from medexam.benchmarks import find_benchmark
from medexam.datasets.own.tables import Record, SourceTable, read_file
from medexam.datasets.rows import RowError, parse_exam
from medexam.datasets.selection import draw_lot
from medexam.items import ExamSet, Gold
from medexam.metrics.audit import AuditItem
from medexam.predictions import Reason, Status

__all__ = [
    "AuditItem",
    "ExamSet",
    "Gold",
    "Reason",
    "Record",
    "RowError",
    "SourceTable",
    "Status",
    "draw_lot",
    "find_benchmark",
    "parse_exam",
    "read_file",
]
