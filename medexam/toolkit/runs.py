"""Stored runs: where they lie, what they hold, what was asked, and their scores."""

from medexam.cli.result_files import ImportedRun, take_files
from medexam.experiments.compare.ranking import ranking_notes
from medexam.experiments.entry.carry_out import Carriers, carry_out, plan_lines, plan_spec
from medexam.experiments.entry.report import Report
from medexam.experiments.plan.cells import AnyCell, Plan, join_plans
from medexam.experiments.plan.document import plan_document, prompt_of
from medexam.experiments.plan.planner import plan_experiment
from medexam.experiments.report.current import current_run
from medexam.experiments.report.derived import score_cell
from medexam.experiments.store.answerers import MODELS, AnswererCount, count_answerers, describe_answerers, read_models
from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.environment import describe_environment
from medexam.experiments.store.items import begin_run
from medexam.experiments.store.protocol import digest_of
from medexam.experiments.store.run_folder import (
    ENVIRONMENT,
    PREDICTIONS,
    RunFolder,
    RunRecord,
    describe_items,
    find_runs,
)
from medexam.experiments.store.stored_run import AnyRun, ExamRun, run_document

__all__ = [
    "ENVIRONMENT",
    "MODELS",
    "PREDICTIONS",
    "AnswererCount",
    "AnyCell",
    "AnyRun",
    "Carriers",
    "ExamRun",
    "ImportedRun",
    "Plan",
    "Report",
    "RunFolder",
    "RunRecord",
    "begin_run",
    "carry_out",
    "count_answerers",
    "current_run",
    "describe_answerers",
    "describe_environment",
    "describe_items",
    "digest_of",
    "find_runs",
    "join_plans",
    "load_items",
    "plan_document",
    "plan_experiment",
    "plan_lines",
    "plan_spec",
    "prompt_of",
    "ranking_notes",
    "read_models",
    "run_document",
    "score_cell",
    "take_files",
]
