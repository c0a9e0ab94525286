"""Waiting for what a test expects, not for a number of seconds: on a busy machine a test takes longer and passes."""

import asyncio
import time
from collections.abc import Callable

BACKSTOP_S = 300.0
"""Seconds after which what did not happen will not; many times what any of it takes on a busy machine."""
_POLL_S = 0.02


def until(true: Callable[[], object], what: str = "it", seconds: float = BACKSTOP_S) -> None:
    """Return once it is true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:.0f} s"
        time.sleep(_POLL_S)


async def soon(true: Callable[[], object], what: str = "it") -> None:
    """Return once it is true, and let the event loop run meanwhile."""
    deadline = time.monotonic() + BACKSTOP_S
    while not true():
        assert time.monotonic() < deadline, f"{what} did not happen within {BACKSTOP_S:.0f} s"
        await asyncio.sleep(_POLL_S)
