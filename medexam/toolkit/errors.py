"""Errors that a command prints in one line without a traceback."""

from medexam.errors import DatasetError, MedExamError, RunFolderError, SpecError

__all__ = ["DatasetError", "MedExamError", "RunFolderError", "SpecError"]
