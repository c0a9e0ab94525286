"""What a caller sees of servers that refuse or are lost: every question is answered."""

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from engine_calls import CHAT, ask, reaching, replies
from wire_server import Wire, serving

from medexam.serve import TIMING

FREE = ask()


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


async def test_a_server_that_refuses_for_a_while_answers_every_question(monkeypatch) -> None:
    monkeypatch.setattr(TIMING, "first_wait_s", 0.02)
    monkeypatch.setattr(TIMING, "cooldown_s", 0.02)
    with serving(FullWire()) as wire:
        async with reaching(wire) as engine:
            wire.refusals = 60
            answers = await replies(engine, [FREE] * 400)
    assert [answer.words for answer in answers] == ["hello"] * 400
    assert not wire.refusals


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
