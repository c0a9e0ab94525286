"""Questions, golds, predictions, and the data sets and benchmarks that they come from."""

from medexam.benchmarks import find_benchmark
from medexam.benchmarks.words.benchmark import WordsBenchmark
from medexam.datasets import find_files, load_exam_set, sample_evenly
from medexam.datasets.casimedicos.posing import pose_spans
from medexam.datasets.exam_table import FIELDS, SOURCE_METADATA, WHOLE, render_record, write_exam_table
from medexam.datasets.own.tables import Record, SourceTable, read_file
from medexam.datasets.pictures.originals import Pictures, read_embedded
from medexam.datasets.readers import EXPLANATION_STATISTICS
from medexam.datasets.rows import RowError, parse_discipline, parse_exam, parse_whole_number
from medexam.datasets.selection import draw_lot
from medexam.datasets.squad import SpanItem, read_squad
from medexam.experiments.report.dataset_statistics import Statistics, compute_statistics
from medexam.items import AnswerKey, ExamSet, Gold, TaskSet
from medexam.metrics.audit import AuditItem, answer_digest
from medexam.metrics.cliniqlink.task_metrics import find_task_flaws
from medexam.predictions import Failure, Reason, Status
from medexam.questions import Discipline, Exam, Language
from medexam.tasks import Task, TaskGold

__all__ = [
    "EXPLANATION_STATISTICS",
    "FIELDS",
    "SOURCE_METADATA",
    "WHOLE",
    "AnswerKey",
    "AuditItem",
    "Discipline",
    "Exam",
    "ExamSet",
    "Failure",
    "Gold",
    "Language",
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
    "WordsBenchmark",
    "answer_digest",
    "compute_statistics",
    "draw_lot",
    "find_benchmark",
    "find_files",
    "find_task_flaws",
    "load_exam_set",
    "parse_discipline",
    "parse_exam",
    "parse_whole_number",
    "pose_spans",
    "read_embedded",
    "read_file",
    "read_squad",
    "render_record",
    "sample_evenly",
    "write_exam_table",
]
