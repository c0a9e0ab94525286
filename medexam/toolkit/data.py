"""Questions, golds, predictions, and the data sets and benchmarks that they come from."""

from medexam.benchmarks import find_benchmark
from medexam.benchmarks.registry import find_stored_benchmark
from medexam.datasets import find_files, load_exam_set, sample_evenly
from medexam.datasets.exam_table import FIELDS, SOURCE_METADATA, WHOLE, render_record, write_exam_table
from medexam.datasets.examples import ExampleRecord, read_examples
from medexam.datasets.own.tables import Record, SourceTable, read_file
from medexam.datasets.pictures.originals import Pictures, read_embedded
from medexam.datasets.rows import RowError, parse_discipline, parse_exam, parse_whole_number
from medexam.datasets.selection import draw_lot
from medexam.datasets.squad import SpanItem, read_squad
from medexam.experiments.report.dataset_statistics import Statistics, compute_statistics
from medexam.metrics.audit import AuditItem, answer_digest
from medexam.predictions import ModelCall, Reason, Status
from medexam.questions import AnswerKey, Discipline, Exam, ExamSet, Gold, Language, Task, TaskGold, TaskSet

__all__ = [
    "FIELDS",
    "SOURCE_METADATA",
    "WHOLE",
    "AnswerKey",
    "AuditItem",
    "Discipline",
    "Exam",
    "ExamSet",
    "ExampleRecord",
    "Gold",
    "Language",
    "ModelCall",
    "Pictures",
    "Reason",
    "Record",
    "RowError",
    "SourceTable",
    "SpanItem",
    "Statistics",
    "Status",
    "Task",
    "TaskGold",
    "TaskSet",
    "answer_digest",
    "compute_statistics",
    "draw_lot",
    "find_benchmark",
    "find_files",
    "find_stored_benchmark",
    "load_exam_set",
    "parse_discipline",
    "parse_exam",
    "parse_whole_number",
    "read_embedded",
    "read_examples",
    "read_file",
    "read_squad",
    "render_record",
    "sample_evenly",
    "write_exam_table",
]
