"""Garbage collection while thousands of questions are read or asked.

Python looks for circles among all objects whenever so many are new, and half a million that imports left behind are
looked at again and again, for nearly half of a client's time. They are no garbage.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000
"""New objects after which Python looks for circles, in the place of 700."""


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Within the block, what was alive before is left alone and circles among new objects are looked for seldom."""
    gc.collect()
    gc.freeze()
    young, *older = gc.get_threshold()
    gc.set_threshold(max(young, _NEW_OBJECTS), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)
        gc.unfreeze()
