"""Which token each choice is, right after a prompt.

A choice can be read as the next token only if the prompt and the choice together are the prompt's tokens and one more.
Whether they are depends on the last characters of the prompt alone, so each ending is looked at once. This module knows
a tokenizer and strings.
"""

from collections import OrderedDict
from collections.abc import Sequence

from medexam.serve.engines.prompt_text import Renderer

_TAIL = 24
"""Characters of the prompt that are looked at if the opening words end with a line: more than any merge spans."""
_CACHE_SIZE = 4096
"""Endings that are cached; long reasoning makes many."""


class ChoiceTokens:
    """Finds and remembers the tokens of choices."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._cache: OrderedDict[tuple[str, tuple[str, ...]], tuple[int, ...] | None] = OrderedDict()

    async def find(self, prompt: str, prefill: str, choices: Sequence[str]) -> tuple[int, ...] | None:
        """Find one distinct token per choice, in order; None unless each choice is a single token there."""
        ending = prefill.rpartition("\n")[2] or prompt[-_TAIL:]
        key = (ending, tuple(choices))
        if key not in self._cache:
            self._cache[key] = await self._look(ending, choices)
            if len(self._cache) > _CACHE_SIZE:
                self._cache.popitem(last=False)
        return self._cache[key]

    async def _look(self, ending: str, choices: Sequence[str]) -> tuple[int, ...] | None:
        prefix = await self._renderer.tokens(ending)
        ids: list[int] = []
        for choice in choices:
            tokens = await self._renderer.tokens(ending + choice)
            # Other tokens before the last one: the choice has merged with the end of the prompt, which as it is sent
            # ends in other tokens.
            if tokens[:-1] != prefix or tokens[-1] in ids:
                return None
            ids.append(tokens[-1])
        return tuple(ids)
