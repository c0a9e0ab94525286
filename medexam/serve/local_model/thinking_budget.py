"""The most tokens that replies may think: a row that has used them up is made to close its block.

This module knows tokens and marks; what is thought it does not know.
"""

from collections.abc import Sequence
from typing import Any

from medexam.serve.local_model.model import LocalModel
from medexam.serve.thinking import CLOSED_EARLY, CLOSING, find_thinking

_BEGINNING = 8
"""Tokens within which a reply begins to think, if it does."""


class ThinkingBudget:
    """A step of transformers' `generate` that lets row i think `budget` tokens; its prompt opened a block if
    `opened[i]`.
    """

    def __init__(self, model: LocalModel, budget: int, width: int, opened: Sequence[bool]) -> None:
        """`width` is the tokens of the prompts, padding included."""
        self._model = model
        self._budget = budget
        self._width = width
        self._opened = opened
        (self._end,) = model.encode([CLOSED_EARLY])
        self._forced: list[int | None] = [None] * len(opened)
        """Of each row, how many tokens of the end were written; None if it was not made to end."""
        self._done = [False] * len(opened)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores, where a row that must close its block has one token left."""
        for row, tokens in enumerate(input_ids[:, self._width :].tolist()):
            token = None if self._done[row] else self._next(row, tokens)
            if token is not None:
                kept = scores[row, token].clone()
                scores[row] = float("-inf")
                scores[row, token] = kept if kept.isfinite() else 0.0
        return scores

    def _next(self, row: int, tokens: list[int]) -> int | None:
        written = self._forced[row]
        if written is None:
            if not self._must_end(row, tokens):
                return None
            written = 0
        if written == len(self._end):
            self._done[row] = True
            return None
        self._forced[row] = written + 1
        return self._end[written]

    def _must_end(self, row: int, tokens: list[int]) -> bool:
        if len(tokens) < self._budget:
            return False
        beginning = self._model.tokenizer.decode(tokens[:_BEGINNING], skip_special_tokens=False)
        if find_thinking(beginning, opened=self._opened[row]) is None:
            self._done[row] = True
            return False
        # Looked for once: from here on the end is written, or was.
        self._done[row] = CLOSING in self._model.tokenizer.decode(tokens, skip_special_tokens=False)
        return not self._done[row]
