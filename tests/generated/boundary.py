"""What a boundary is to the tests: inputs, and what is done with one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st


@dataclass(frozen=True)
class Boundary:
    """One way in."""

    inputs: st.SearchStrategy[Any]
    trial: Callable[[Any], None]
    """Raises `EndError` unless it ends as it should."""
