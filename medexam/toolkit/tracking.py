"""The MLflow store, and copies of folders in it."""

from medexam.experiments.store.run_folder import CORPUS_MAP
from medexam.experiments.track.copies import SOURCE, Copy, put_copy, send_copy
from medexam.experiments.track.payload import version_tags
from medexam.experiments.track.runs import attach_map, track
from medexam.experiments.track.store import default_tracking_uri, experiment_id, open_store

__all__ = [
    "CORPUS_MAP",
    "SOURCE",
    "Copy",
    "attach_map",
    "default_tracking_uri",
    "experiment_id",
    "open_store",
    "put_copy",
    "send_copy",
    "track",
    "version_tags",
]
