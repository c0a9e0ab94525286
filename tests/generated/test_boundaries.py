"""Every boundary against a few generated inputs; `make fuzz` tries thousands."""

import os
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings

from generated.boundaries import BOUNDARIES

EXAMPLES = int(os.environ.get("MEDEXAM_EXAMPLES", "10"))
"""Inputs of each boundary."""
BOUNDED = settings(
    max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("name", BOUNDARIES)
def test_what_comes_in_is_taken_or_refused_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with ExitStack() as closing:
        # The store of the runs is not what is tried, and each trial has runs of its own.
        closing.enter_context(patch("medexam.experiments.track.store.send_to_store"))
        boundary = BOUNDARIES[name](tmp_path, closing)
        BOUNDED(given(boundary.inputs)(boundary.trial))()
