"""Fixtures of the engines: requests, and faults that are asked again at once."""

from collections.abc import Callable

import pytest
from dspy.lm15 import Config, Message, Request

from medexam.serve.contract import CHOICE


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults are asked again at once."""
    monkeypatch.setattr("medexam.serve.network.retry.FIRST_WAIT_S", 0.001)


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
