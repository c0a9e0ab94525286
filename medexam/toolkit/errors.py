"""Errors that a command prints in one line without a traceback."""

from medexam.errors import DatasetError, EndpointUnreachableError, EngineError, RunFolderError, SpecError

__all__ = ["DatasetError", "EndpointUnreachableError", "EngineError", "RunFolderError", "SpecError"]
