"""Questions, golds, predictions, and the data sets and benchmarks that they come from."""

from medexam.benchmarks import find_benchmark
from medexam.datasets.exam_table import FIELDS, SOURCE_METADATA, WHOLE, render_record
from medexam.datasets.own.tables import Record, SourceTable, read_file
from medexam.datasets.rows import RowError, parse_discipline, parse_exam, parse_whole_number
from medexam.datasets.selection import draw_lot
from medexam.items import ExamSet, Gold
from medexam.metrics.audit import AuditItem
from medexam.predictions import Reason, Status
from medexam.questions import Discipline, Exam, Language

__all__ = [
    "FIELDS",
    "SOURCE_METADATA",
    "WHOLE",
    "AuditItem",
    "Discipline",
    "Exam",
    "ExamSet",
    "Gold",
    "Language",
    "Reason",
    "Record",
    "RowError",
    "SourceTable",
    "Status",
    "draw_lot",
    "find_benchmark",
    "parse_discipline",
    "parse_exam",
    "parse_whole_number",
    "read_file",
    "render_record",
]
