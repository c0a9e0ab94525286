"""Fixtures of the engines: requests, and faults that are asked again at once."""

from collections.abc import Callable

import pytest
from dspy.lm15 import Config, Message, Request

from medexam.dspy_requests import CHOICE
from medexam.serve import TIMING
from waiting import BACKSTOP_S


@pytest.fixture(autouse=True)
def _waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults are asked again at once; a first reply may take long, since a busy machine still imports what it needs."""
    monkeypatch.setattr(TIMING, "first_wait_s", 0.001)
    monkeypatch.setattr(TIMING, "probe_silence_s", BACKSTOP_S)


@pytest.fixture(scope="session")
def ask() -> Callable[..., Request]:
    """Builds a request: a user turn, perhaps a system turn, opening words of the reply, choices and options."""

    def build(user, *, system=None, prefill=None, choice=None, **options) -> Request:
        messages = [Message.user(user)]
        if prefill is not None:
            messages.append(Message.assistant(prefill))
        extensions = None if choice is None else {CHOICE: choice}
        return Request(
            model="m", system=system, messages=tuple(messages), config=Config(extensions=extensions, **options)
        )

    return build
