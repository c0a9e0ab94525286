"""How a server draws the tokens of a reply: which neutral values it takes, which fields it does not read, and what it
fills in where a request leaves a field out.

vLLM and SGLang take such values from the model's own `generation_config.json`, so requests state neutral ones. What is
filled shows in replies under one seed: they differ if a field is left out. This module words requests and compares
replies; how they travel is known to `probe.py` and the engines.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import Field

from medexam.frozen_model import FrozenModel

Draw = Callable[[dict[str, Any]], Awaitable[list[str]]]
"""Sends the fields of one request; returns the texts of its replies, none if it is refused."""

NEUTRAL: Mapping[str, tuple[float, ...]] = {
    "top_p": (1.0,),
    "top_k": (-1, 0),
    "min_p": (0.0,),
    "repetition_penalty": (1.0,),
    "presence_penalty": (0.0,),
    "frequency_penalty": (0.0,),
}
"""Field -> the values that let it change nothing, in the order in which they are tried. Servers word `top_k` in two
ways."""
LLAMA_CPP: Mapping[str, tuple[float, ...]] = {"repeat_penalty": (1.0,)}
"""What llama.cpp's servers call the penalty; vLLM warns of it at each request."""

_EXTREME = {"top_p": 0.01, "top_k": 1, "min_p": 1.0, "repetition_penalty": 2.0}
"""Values that change most replies, if they are read. Of new text the other two penalties change too little."""
_REPLIES = 16
_FEW = 4
"""Replies under an extreme value, the first of `_REPLIES`."""
_TOKENS = 8
_MOST_UNLIKE = 2
"""Replies of `_REPLIES` that may differ by rounding, which depends on what a server computes at once."""
_DRAWN = {"temperature": 1.0, "seed": 23, "max_tokens": _TOKENS}


class SamplingRecord(FrozenModel):
    """What was seen of one server."""

    neutral: dict[str, int | float] = Field(default_factory=dict)
    """Fields that each request states unless it has values of its own; empty if the server takes none."""
    unread: tuple[str, ...] = ()
    """Those that it takes and does not read, as far as that can be seen."""
    filled: tuple[str, ...] | None = None
    """Those that it reads, and fills with other values where they are left out; None if it cannot be seen."""

    @property
    def stated(self) -> str:
        """How requests treat what a spec leaves out, in words that are part of a run's identity."""
        lacking = [name for name in NEUTRAL if name not in self.neutral or name in self.unread]
        return f"neutral but for {', '.join(lacking)}" if lacking else "neutral"


async def find_sampling(draw: Draw, *, several: bool, vllm: bool) -> SamplingRecord:
    """Ask a server for its record; `several`: it takes `n`, without which only `neutral` is looked at."""
    neutral = await find_neutral(draw, NEUTRAL if vllm else {**NEUTRAL, **LLAMA_CPP})
    if not several:
        return SamplingRecord(neutral=neutral)
    body = {**_DRAWN, "n": _REPLIES}
    extreme = {name: value for name, value in _EXTREME.items() if name in neutral}
    stated = {**body, **neutral}
    first, second, bare_replies, *extreme_replies = await asyncio.gather(
        *(draw(fields) for fields in (stated, dict(stated), body)),
        *(draw({**stated, "n": _FEW, name: value}) for name, value in extreme.items()),
    )
    if not first or _differ(first, second):
        return SamplingRecord(neutral=neutral)
    unread = [name for name, replies in zip(extreme, extreme_replies, strict=True) if replies == first[:_FEW]]
    filled = await _find_filled(draw, body, neutral, first) if _differ(first, bare_replies) else ()
    return SamplingRecord(neutral=neutral, unread=tuple(unread), filled=filled)


async def find_neutral(draw: Draw, candidates: Mapping[str, tuple[float, ...]]) -> dict[str, int | float]:
    """Find the neutral values that a server takes: all at once, or else each field alone in each of its values."""
    body = {"temperature": 1.0, "seed": 23, "max_tokens": 1}
    usual = {name: values[0] for name, values in candidates.items()}
    if await draw({**body, **usual}):
        return usual
    neutral: dict[str, int | float] = {}
    for name, values in candidates.items():
        for value in values:
            if await draw({**body, name: value}):
                neutral[name] = value
                break
    return neutral


async def _find_filled(
    draw: Draw, body: Mapping[str, Any], neutral: Mapping[str, float], base_replies: Sequence[str]
) -> tuple[str, ...]:
    """Find the fields without which other replies come, each looked at twice."""
    names = list(neutral)
    for _ in "12":
        bodies = ({**body, **{key: neutral[key] for key in neutral if key != name}} for name in names)
        replies = await asyncio.gather(*map(draw, bodies))
        names = [name for name, draws in zip(names, replies, strict=True) if _differ(base_replies, draws)]
    return tuple(names)


def _differ(replies: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether more replies differ than rounding explains."""
    if len(replies) != len(others):
        return True
    return sum(a != b for a, b in zip(replies, others, strict=True)) > _MOST_UNLIKE
