"""Garbage collection while modules are imported, and while thousands of questions are read or asked.

Python searches all objects for cycles whenever 700 more are alive. Imports leave half a million behind that are no
garbage. To search them again and again takes a quarter of the time of imports, and nearly half of a client's time.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000
"""New objects after which Python searches for cycles, instead of 700."""


@contextmanager
def gc_seldom() -> Iterator[None]:
    """Search new objects seldom within the block."""
    young, *older = gc.get_threshold()
    gc.set_threshold(max(young, _NEW_OBJECTS), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)


_open_pauses = 0
"""Blocks of `gc_paused` that were begun and have not ended, in all threads."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Leave objects that were alive before unsearched within the block, and search new ones seldom.

    A block within another one, or beside it in a second thread, leaves frozen what the first one froze.
    """
    global _open_pauses
    if not _open_pauses:
        # The young objects only: to look at all that imports left behind takes up to half a second.
        gc.collect(1)
        gc.freeze()
    _open_pauses += 1
    try:
        with gc_seldom():
            yield
    finally:
        _open_pauses -= 1
        if not _open_pauses:
            gc.unfreeze()
