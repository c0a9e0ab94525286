"""How the questions of a run failed, counted by kind."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from medexam.predictions import Prediction

_NETWORK = {"LMTransportError", "LMTimeoutError"}
_SERVER = {"LMProviderError", "LMServerError", "LMRateLimitError", "LMBillingError", "LMInvalidRequestError"}


@dataclass(frozen=True)
class FailureCount:
    """Failed questions of one kind."""

    boundary: str
    """Where the fault came from: `network` (no reply came), `server` (it replied with an error) or `client`."""
    kind: str
    """The error's class name, such as `LMTransportError`."""
    questions: int
    example: str
    """The message of the last one, in one line."""


def count_failures(predictions: Iterable[Prediction], asked: Collection[str]) -> tuple[FailureCount, ...]:
    """The failures among the questions of `asked`, by key, the commonest kind first."""
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for prediction in predictions:
        failure = prediction.failure
        if failure is not None and prediction.question in asked:
            counts[failure.kind] += 1
            examples[failure.kind] = " ".join(failure.message.split())
    return tuple(FailureCount(_boundary(kind), kind, count, examples[kind]) for kind, count in counts.most_common())


def _boundary(kind: str) -> str:
    if kind in _NETWORK:
        return "network"
    return "server" if kind in _SERVER else "client"
