"""What a program answered: one `Prediction` is one line of `predictions.jsonl`.

It holds no gold, so a corrected answer key never needs the model again. It holds a score only where a metric of Python
gave one as the answer came: that metric is part of the run's identity.
"""

from typing import Any, Self

from pydantic import ConfigDict, GetCoreSchemaHandler, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import ArgsKwargs, CoreSchema, core_schema

from medexam.frozen_model import SlottedModel
from medexam.model_calls import Reading, is_cut
from medexam.predictions.core import Outcome, Reason, Status
from medexam.predictions.evidence.citations import CitationFields
from medexam.predictions.evidence.failures import FailureFields
from medexam.predictions.evidence.metric_scores import MetricScoreFields
from medexam.predictions.evidence.option_scores import OptionScoreFields
from medexam.predictions.evidence.orders import OrderFields
from medexam.predictions.evidence.outputs import OutputFields
from medexam.predictions.evidence.passages import PassageFields
from medexam.predictions.evidence.rounds import RoundFields
from medexam.predictions.evidence.verdicts import VerdictFields
from medexam.predictions.evidence.votes import VoteFields
from medexam.text import writable


def _writable_fields(arguments: Any) -> Any:
    """Return the fields of a mapping, or those that a prediction is made with, as `writable` leaves them."""
    if not isinstance(arguments, ArgsKwargs):
        return writable(arguments)
    # Most fields are empty or numbers, and there are as many predictions as questions.
    fields = arguments.kwargs or {}
    return ArgsKwargs(
        arguments.args,
        {
            name: value if not value or (isinstance(value, str) and value.isascii()) else writable(value)
            for name, value in fields.items()
        },
    )


@dataclass(
    frozen=True,
    slots=True,
    kw_only=True,
    config=ConfigDict(extra="forbid", validate_by_name=True, allow_inf_nan=False, protected_namespaces=()),
)
class Prediction(
    SlottedModel,
    VerdictFields,
    MetricScoreFields,
    CitationFields,
    RoundFields,
    OrderFields,
    VoteFields,
    OutputFields,
    FailureFields,
    PassageFields,
    OptionScoreFields,
):
    """One program's answer to one question, with all evidence: a line holds the fields of the last base first."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Store what a server wrote, whatever it wrote."""
        fields = handler(source)
        # The parser of JSON refuses halves of surrogate pairs itself, and to look for them takes longer than to parse.
        checked = core_schema.no_info_before_validator_function(_writable_fields, fields)
        return core_schema.json_or_python_schema(json_schema=fields, python_schema=checked)

    @model_validator(mode="after")
    def _status_agrees(self) -> Self:
        if (self.answer is not None) + (self.text is not None) != (self.status is Status.ANSWERED):
            raise ValueError(f"{self.question}: one answer goes with status 'answered' and none with any other")
        if self.lenient is not None and self.answer not in (None, self.lenient):
            raise ValueError(f"{self.question}: what only the lenient reader reads is the answer, or there is none")
        if (self.reason is not None) != (self.status is Status.UNANSWERED):
            raise ValueError(f"{self.question}: a reason goes with status 'unanswered' and with no other")
        if (self.failure is not None) != (self.status is Status.FAILED):
            raise ValueError(f"{self.question}: a failure goes with status 'failed' and with no other")
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the line of `predictions.jsonl` as a JSON-ready dictionary."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_line(self) -> bytes:
        """Write `to_json` as UTF-8, with the end of the line."""
        return self.__pydantic_serializer__.to_json(self, exclude_none=True) + b"\n"


def as_read(prediction: Prediction, reading: Reading) -> Prediction:
    """Return the prediction as it is under a reading; itself where it was read so, or both read the same."""
    answer = prediction.lenient if reading == "lenient" else None
    if prediction.lenient is None or prediction.answer == answer:
        return prediction
    if answer is not None:
        return prediction.model_copy(update={"status": Status.ANSWERED, "reason": None, "answer": answer})
    reason = Reason.TRUNCATED if is_cut(prediction.finish_reason) else Reason.UNPARSED
    return prediction.model_copy(update={"status": Status.UNANSWERED, "reason": reason, "answer": None})


Answered = Outcome | Prediction
"""How a question came out: it has a `status` and an `answer`."""
