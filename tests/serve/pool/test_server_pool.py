"""What a caller sees of several servers: how much is in flight, who answers for a lost one, and what is counted."""

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from engine_calls import CHAT, ask, reaching, replies, reply
from wire_server import Wire, serving

import medexam
from medexam.serve import TIMING

FREE = ask()
LEAST = 16
"""Requests that are in flight at a server however much it refuses."""


@dataclass
class FullWire(Wire):
    """Answers forty requests once its `refusals` are set, then refuses so many, and answers all others."""

    refusals: int = 0
    answered: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self.lock:
            counts = path == CHAT and self.refusals > 0
            self.answered += counts
            refuses = counts and self.answered > 40
            self.refusals -= refuses
        return (503, {}) if refuses else super().reply(path, body)


async def keep_busy(engine: Any, count: int) -> tuple[list[str], int]:
    """Ask as a run does, as much at once as the engine says; return the replies, and the least that it said."""
    asked: set[asyncio.Task[Any]] = set()
    done: list[Any] = []
    least = engine.concurrency
    while len(done) < count:
        least = min(least, engine.concurrency)
        while len(asked) < min(engine.concurrency, count - len(done)):
            asked.add(asyncio.create_task(reply(engine, FREE)))
        ended, asked = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        done += ended
    return [(await one).words for one in done], least


async def test_a_server_that_refuses_is_given_less_and_every_question_is_answered(monkeypatch) -> None:
    monkeypatch.setattr(TIMING, "first_wait_s", 0.02)
    monkeypatch.setattr(TIMING, "cooldown_s", 0.02)
    with serving(FullWire()) as wire:
        async with reaching(wire) as engine:
            first, wire.refusals = engine.concurrency, 60
            words, least = await keep_busy(engine, 400)
            assert words == ["hello"] * 400
            assert LEAST <= least < first
    assert not wire.refusals


async def test_however_much_a_server_refuses_some_is_given_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 1)
    with serving(Wire()) as wire:
        async with reaching(wire) as engine:
            wire.refuse[CHAT] = 429
            for _ in range(6):
                with pytest.raises(medexam.errors.RateLimitError):
                    await reply(engine, FREE)
                await asyncio.sleep(0.26)
            assert engine.concurrency == LEAST


async def test_a_server_whose_connection_is_lost_rests_and_no_answer_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Wire()) as lost, serving(Wire()) as kept:
        async with reaching(lost, kept) as engine:
            lost.drop = True
            answers = await replies(engine, [FREE] * 10)
            assert [answer.words for answer in answers] == ["hello"] * 10
            before = len(lost.bodies(CHAT))
            await replies(engine, [FREE] * 10)
    assert len(lost.bodies(CHAT)) == before
    assert len(kept.bodies(CHAT)) == 20
