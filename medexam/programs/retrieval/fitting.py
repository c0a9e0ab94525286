"""Texts before a question that are cut where they do not fit the model's context."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from dspy.utils.exceptions import ContextWindowExceededError

P = TypeVar("P")
_LEAST = 200
"""Characters of passages below which none are shown."""


async def fitted(text: str, ask: Callable[[str], Awaitable[P]]) -> P:
    """Return what `ask` makes of a text, asked anew with a shorter one while it does not fit the model's context.

    It is cut from the end by halves; the output carries `passages_cut`, how many characters that were. Raises
    `ContextWindowExceededError` where even no text does not fit.
    """
    full_text = text
    while True:
        try:
            output: Any = await ask(text)
        except ContextWindowExceededError:
            if not text:
                raise
            text = text[: len(text) // 2].rstrip() if len(text) >= 2 * _LEAST else ""
        else:
            fitting: P = output.copy(passages_cut=len(full_text) - len(text))
            return fitting
