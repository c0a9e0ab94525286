"""Whether the ways of reading log-probabilities agree on a server: the same texts, read by each.

This module asks an engine as programs do; it knows no wire.
"""

import time
from collections.abc import Sequence
from typing import Literal, get_args

from medexam.errors import CallError, LogprobsUnavailableError
from medexam.frozen_model import FrozenModel
from medexam.model_calls import ContinuationLogprobs, ContinuationRequest, Dialogue, ReadBy, Sampling
from medexam.serve.contract import Engine

_QUESTION = "Which of these organs makes insulin?\n1. The liver.\n2. The pancreas.\n3. The spleen."
_TEXTS = (" The liver.", " The pancreas.", " The pancreas, in its islets.", " The spleen.")
_LABELS = (" 1", " 2", " 3")


class ReadCheck(FrozenModel):
    """What came of reading by one way."""

    way: ReadBy
    refusal: str | None
    """Why it cannot be used; None if it can."""
    difference: float | None = None
    """The largest difference from the first way that works, nats a token; None for that way itself, and for one that
    cannot be used."""
    seconds: float | None = None
    """Time of its second reading, when connections are open; None if it cannot be used."""


async def check_reads(engine: Engine) -> list[ReadCheck]:
    """Read the same texts by each way, and compare; `label` reads option numbers, the others words too."""
    verdicts: list[ReadCheck] = []
    words: ContinuationLogprobs | None = None
    labels: ContinuationLogprobs | None = None
    for way in get_args(ReadBy):
        try:
            # Once before the clock starts, which opens the connections.
            await read_texts(engine, _LABELS, way, given_opening=True)
            start = time.perf_counter()
            numbers = await read_texts(engine, _LABELS, way, given_opening=True)
            seconds = time.perf_counter() - start
            text = await read_texts(engine, _TEXTS, way) if way != "label" else None
        except (LogprobsUnavailableError, CallError) as error:
            verdicts.append(ReadCheck(way=way, refusal=str(error)))
            continue
        pairs = [(numbers, labels), (text, words)]
        differences = [
            _difference(reading, baseline)
            for reading, baseline in pairs
            if reading is not None and baseline is not None
        ]
        verdicts.append(
            ReadCheck(way=way, refusal=None, difference=max(differences, default=None), seconds=round(seconds, 4))
        )
        labels, words = labels or numbers, words or text
    return verdicts


async def read_texts(
    engine: Engine, texts: Sequence[str], way: ReadBy | Literal["auto"], *, given_opening: bool = False
) -> ContinuationLogprobs:
    """Read the log-probabilities of texts after a fixed question; raises `LogprobsUnavailableError`, `CallError`s."""
    continuations = ContinuationRequest(texts=tuple(texts), read_by=way, given_opening=given_opening)
    messages = [{"role": "user", "content": f"{_QUESTION}\nAnswer:"}]
    (generation,) = await engine.reply(Dialogue(messages, "", Sampling(), continuations=continuations))
    assert generation.reading is not None  # noqa: S101 - it was asked for
    return generation.reading


def _difference(reading: ContinuationLogprobs, baseline: ContinuationLogprobs) -> float:
    """Compute the largest difference of two readings of the same texts, nats a token."""
    pairs = zip(reading.continuations, baseline.continuations, strict=True)
    return max(abs(a - b) for x, y in pairs for a, b in zip(x.logprobs, y.logprobs, strict=True))
