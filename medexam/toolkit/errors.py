"""Errors that a command prints in one line without a traceback."""

from medexam.errors import DatasetError, RunFolderError, SpecError

__all__ = ["DatasetError", "RunFolderError", "SpecError"]
