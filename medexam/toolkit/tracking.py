"""The MLflow store, and copies of folders in it."""

from medexam.experiments.track.copies import Copy, SentCopy, default_tracking_uri, send_copy
from medexam.experiments.track.runs import track

__all__ = ["Copy", "SentCopy", "default_tracking_uri", "send_copy", "track"]
