"""The most tokens that a reply may think: one that has used them up is made to close its block.

This module knows tokens and marks; what is thought it does not know.
"""

from collections.abc import Sequence

from medexam.serve.local_model.model import LocalModel
from medexam.serve.thinking import CLOSED_EARLY, CLOSING, find_thinking

_BEGINNING = 8
"""Tokens within which a reply begins to think, if it does."""


class RowBudget:
    """Lets one reply think `budget` tokens; `opened`: its prompt opened a block."""

    def __init__(self, model: LocalModel, budget: int, *, opened: bool) -> None:
        self._model = model
        self._budget = budget
        self._opened = opened
        (self._end,) = model.encode([CLOSED_EARLY])
        self._forced: int | None = None
        """How many tokens of the end were written; None if the reply was not made to end."""
        self._is_over = False

    def next_token(self, tokens: Sequence[int]) -> int | None:
        """Return the token that must follow these of the reply; None if any may. Called once for each token."""
        if self._is_over:
            return None
        if self._forced is None:
            if not self._must_end(tokens):
                return None
            self._forced = 0
        if self._forced == len(self._end):
            self._is_over = True
            return None
        self._forced += 1
        return self._end[self._forced - 1]

    def _must_end(self, tokens: Sequence[int]) -> bool:
        if len(tokens) < self._budget:
            return False
        beginning = self._model.tokenizer.decode(tokens[:_BEGINNING], skip_special_tokens=False)
        if find_thinking(beginning, opened=self._opened) is None:
            self._is_over = True
            return False
        # Looked for once: from here on the end is written, or was.
        self._is_over = CLOSING in self._model.tokenizer.decode(tokens, skip_special_tokens=False)
        return not self._is_over
