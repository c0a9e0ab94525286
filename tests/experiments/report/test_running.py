"""How long a run that another process asks takes still: said where the folder knows it, and only there."""

from datetime import datetime, timedelta

import pytest

from medexam.experiments.report.derived import describe_time_left

START = "2026-11-20T10:00:00.000+00:00"
FIRST = {"started_at": START, "ended_at": START}


@pytest.mark.parametrize(
    ("environment", "seconds", "answered", "said"),
    [
        (FIRST, 60, 33, ", about 2 min left"),
        (FIRST, 60, 50, ", about 60 s left"),
        (FIRST, 36_000, 50, ", about 10.0 h left"),
        (FIRST, 60, 9, ""),
        (FIRST, 9, 50, ""),
        (FIRST, -60, 50, ""),
        (FIRST, 60, 100, ""),
        # a run that was continued: how many of the answers are this invocation's is not known
        ({**FIRST, "ended_at": "2026-11-20T10:00:01.000+00:00"}, 60, 50, ""),
        ({}, 60, 50, ""),
    ],
)
def test_the_time_left_follows_from_the_first_invocation(environment, seconds, answered, said) -> None:
    now = datetime.fromisoformat(START) + timedelta(seconds=seconds)
    assert describe_time_left(environment, answered, 100, now) == said
