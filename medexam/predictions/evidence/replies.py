"""The replies that an answer was made of."""

from dataclasses import dataclass
from operator import not_
from typing import Annotated

from pydantic import Field

from medexam.frozen_model import FrozenModel, is_none
from medexam.model_calls import ToolCall
from medexam.predictions.core import CorePrediction, Count, ThinkingTokens


class Reply(FrozenModel):
    """One of several replies that an answer was made of."""

    text: str
    finish_reason: str
    """As the server wrote it: `stop`, `length`, or a provider's own word."""
    prompt_tokens: Count | None = None
    """None when the engine did not report it."""
    completion_tokens: Count | None = None
    """None when the engine did not report it."""
    thinking_tokens: ThinkingTokens = None
    """Those of the completion's that are thinking. Left out where the engine did not report it."""
    seed: Annotated[int | None, Field(exclude_if=is_none)] = None
    """The seed that it was drawn under. Left out where nothing was drawn, and in older files."""
    asked: Annotated[str | None, Field(exclude_if=is_none)] = None
    """Which of the experiment's further models was asked, by its name in the spec. Left out: the run's model."""
    tool_calls: Annotated[tuple[ToolCall, ...], Field(exclude_if=not_)] = ()
    """The tools that it calls. Left out where it calls none."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ReplyFields(CorePrediction):
    """An answer with every reply."""

    __slots__ = ()

    generations: Annotated[tuple[Reply, ...] | None, Field(exclude_if=is_none)] = None
    """Every reply in the order in which they came; None where the program ships, whose `reply` says all. Left out of
    a line where it is None."""
