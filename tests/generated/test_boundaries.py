"""Whatever a user's spec, file or command is, and whatever a server replies: a result, or one line of the package's."""

import os

import pytest

from generated.boundaries import BOUNDARIES
from generated.fuzz import search

EXAMPLES = int(os.environ.get("MEDEXAM_EXAMPLES", "10"))
"""Inputs of each boundary; `make nightly` tries a thousand."""


@pytest.mark.parametrize("name", BOUNDARIES)
def test_what_comes_in_is_taken_or_refused_in_one_line(name: str) -> None:
    search(name, 0, EXAMPLES)
