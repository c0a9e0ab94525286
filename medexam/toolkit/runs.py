"""Stored runs: where they lie, what they hold, what was asked, and their scores."""

from medexam.experiments.store.data_changes import load_stored
from medexam.experiments.store.run_folder import RunFolder, RunRecord, find_runs

__all__ = ["RunFolder", "RunRecord", "find_runs", "load_stored"]
