"""The form of `environment.json`, as far as anything is made of it: what is written there by hand is refused early.

What it says beside this is shown unchanged.
"""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from medexam.predictions.calls import Count


def _check_time(text: str) -> str:
    """Return the text; raises `ValueError` unless `datetime` has that time; years have four digits there."""
    datetime.fromisoformat(text).timestamp()
    return text


_Time = Annotated[str, AfterValidator(_check_time)]
_Number = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Engine(_Form):
    model: str = ""
    details: dict[str, Any] | None = None


class _Prices(_Form):
    prompt_usd: _Number
    completion_usd: _Number


class EnvironmentRecord(_Form):
    """The parts of `environment.json` that are read; every one may be missing."""

    started_at: _Time | None = None
    ended_at: _Time | None = None
    asked_s: _Number | None = None
    asked: Count | None = None
    engine: _Engine | None = None
    prices: _Prices | None = None
    medexam: str | None = None
    git_commit: str | None = None
