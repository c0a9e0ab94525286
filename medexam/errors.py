"""The errors that medexam raises on purpose.

Every message says what is wrong, where, and each way out; the command line prints it in one line and
exits with code 2. Anything that is not a `MedExamError` is a defect of this package.
"""

from typing import Any

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


class CallError(MedExamError):
    """A call of a model broke; what DSPy calls is told by its own error of the same meaning, see `dspy_internals`."""

    status: int | None = None
    """That of HTTP."""
    retry_after: float | None = None
    """Seconds after which the server wants to be asked again."""
    provider: str | None = None
    provider_code: str | None = None
    request_id: str | None = None
    feature: str | None = None
    """The setting or part that is not supported."""

    def __init__(self, message: str = "", **details: Any) -> None:
        """Keep what the server or the provider said, by the names above."""
        super().__init__(message)
        self.message = str(self.args[0])
        vars(self).update(details)

    def __str__(self) -> str:
        return self.message


class TransportError(CallError):
    """The connection was lost, or never made."""


class ConfigurationError(CallError):
    """The engine itself cannot ask any more."""


class UnsupportedFeatureError(CallError):
    """The engine cannot ask for this, whatever the model."""


class ProviderError(CallError):
    """The server or the provider answered with an error."""

    def __str__(self) -> str:
        parts = {"": self.provider, "HTTP ": self.status, "request ": self.request_id}
        context = ", ".join(f"{label}{part}" for label, part in parts.items() if part)
        return f"{self.message} ({context})" if context else self.message


class AuthError(ProviderError):
    """The key is wrong, or may not do this."""


class BillingError(ProviderError):
    """The account is empty."""


class RateLimitError(ProviderError):
    """Too much was asked in too short a time."""


class CallTimeoutError(ProviderError, TimeoutError):
    """No answer came in time."""


class ServerError(ProviderError):
    """The server failed, or its reply cannot be read."""


class InvalidRequestError(ProviderError):
    """What was asked is refused."""


class ContextLengthError(InvalidRequestError):
    """The prompt, or it and the reply, do not fit the model's context."""


class UnsupportedModelError(InvalidRequestError):
    """There is no such model."""


class FilteredError(InvalidRequestError):
    """A filter of the provider's withheld the reply; asking again would bring none."""


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
