"""Faults are asked again at once; a first reply may take long, since a busy machine still imports what it needs."""

import pytest

from medexam.serve import TIMING
from waiting import BACKSTOP_S


@pytest.fixture(autouse=True)
def _waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "first_wait_s", 0.001)
    monkeypatch.setattr(TIMING, "probe_silence_s", BACKSTOP_S)
