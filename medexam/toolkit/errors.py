"""Errors that a command prints in one line without a traceback."""

from medexam.errors import DatasetError, EngineError, RunFolderError, SpecError

__all__ = ["DatasetError", "EngineError", "RunFolderError", "SpecError"]
