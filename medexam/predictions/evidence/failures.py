"""How the asking broke."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator

from medexam.frozen_model import FrozenModel
from medexam.predictions.core import CorePrediction
from medexam.predictions.evidence.kind import Kind
from medexam.text import hide_secrets

HiddenText = Annotated[str, AfterValidator(hide_secrets)]
"""A text without keys and passwords."""


class Failure(FrozenModel):
    """A fault, attributed once to the boundary that it crossed."""

    kind: str
    """The error's class name, such as `LMTransportError`."""
    message: HiddenText
    traceback: HiddenText | None = None
    """Python's, of an exception in a program of the user's own. Left out of a line if there is none, and in older
    files."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class FailureFields(CorePrediction):
    """An answer, or how its asking broke."""

    __slots__ = ()

    failure: Failure | None = None
    """Only when failed."""


def _cells(prediction: FailureFields, item: object) -> dict[str, Any]:  # noqa: ARG001
    failure = prediction.failure
    return {"failure_kind": failure.kind if failure else None, "failure_message": failure.message if failure else None}


def _page(prediction: FailureFields) -> dict[str, Any]:
    failure = prediction.failure
    return {"failure": None if failure is None else f"{failure.kind}: {failure.message}"}


FAILURES: Kind[FailureFields, Any] = Kind(
    columns=dict.fromkeys(("failure_kind", "failure_message"), "string"), cells=_cells, page=_page
)
