"""Stored runs: where they lie, what they hold, what was asked, and their scores."""

from medexam.experiments.report.current import current_run
from medexam.experiments.report.derived import score_cell
from medexam.experiments.store.data_changes import load_stored
from medexam.experiments.store.environment import describe_environment
from medexam.experiments.store.protocol import digest_of
from medexam.experiments.store.run_folder import ENVIRONMENT, PREDICTIONS, RunFolder, RunRecord, find_runs
from medexam.experiments.store.stored_run import AnyRun, run_document

__all__ = [
    "ENVIRONMENT",
    "PREDICTIONS",
    "AnyRun",
    "RunFolder",
    "RunRecord",
    "current_run",
    "describe_environment",
    "digest_of",
    "find_runs",
    "load_stored",
    "run_document",
    "score_cell",
]
