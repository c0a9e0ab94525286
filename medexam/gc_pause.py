"""Garbage collection while modules are imported, and while thousands of questions are read or asked.

Python searches all objects for cycles whenever 700 more are alive: a quarter of the time of imports, and nearly half of
a client's time.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_seldom() -> Iterator[None]:
    """Search new objects seldom within the block."""
    young, *older = gc.get_threshold()
    gc.set_threshold(max(young, 50_000), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)
