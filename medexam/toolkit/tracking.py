"""The MLflow store, and copies of folders in it."""

from medexam.experiments.track.copies import SOURCE, Copy, put_copy, send_copy
from medexam.experiments.track.payload import version_tags
from medexam.experiments.track.runs import track
from medexam.experiments.track.store import experiment_id, open_store

__all__ = ["SOURCE", "Copy", "experiment_id", "open_store", "put_copy", "send_copy", "track", "version_tags"]
