"""The errors that medexam raises on purpose.

Every message says what is wrong, where, and each way out; the command line prints it in one line and
exits with code 2. Anything that is not a `MedExamError` is a defect of this package.
"""

from medexam.text import hide_secrets


class MedExamError(Exception):
    """Base of every error that a user can cause or cure; no message of one holds a key or a password."""

    def __init__(self, message: str = "") -> None:
        """Hide what is secret in `message`, maybe quoted from a library or a server."""
        super().__init__(hide_secrets(message))


class SpecError(MedExamError):
    """A spec, an override or a prompt file does not say what to run."""


class DatasetError(MedExamError):
    """A data set is missing, unreadable, unsound, or the selection is empty."""


class CorpusUnreachableError(DatasetError):
    """A corpus of the hub is not on this machine and cannot be downloaded."""


class AnswerFormatError(MedExamError):
    """An answer format cannot be asked for or enforced with this model."""


class ProgramFaultError(MedExamError):
    """A program of the user's own raised an exception; its question fails."""

    def __init__(self, kind: str, message: str, traceback: str | None = None) -> None:
        """Keep `kind`, the class name of the exception, and its whole `traceback`; None where nothing was raised."""
        super().__init__(message)
        self.kind = kind
        self.traceback = traceback


class EngineError(MedExamError):
    """A model cannot be loaded, reached or used as the spec asks."""


class CommitUnknownError(EngineError):
    """Neither the hub nor its cache on this machine knows the commit of a hub model."""


class EndpointUnreachableError(EngineError):
    """No server answers at the endpoint, or it is not the server that the spec names."""


class EndpointSilentError(EndpointUnreachableError):
    """No server answers at the endpoint now; one may later."""


class LogprobsUnavailableError(EngineError):
    """A server does not return the log-probabilities that it was asked for, or returns others."""


class RunFolderError(MedExamError):
    """A run folder cannot be written, is damaged, or belongs to another spec."""


class RunBusyError(RunFolderError):
    """Another process is writing a run folder."""


class TrackingError(MedExamError):
    """The MLflow store cannot be reached or written."""


class IndexBuildError(MedExamError):
    """A vector index cannot be built or written as asked."""


class IndexStaleError(MedExamError):
    """A vector index is missing, unfinished or damaged, or was made of another corpus or with another encoder."""
