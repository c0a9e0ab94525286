"""What the product does to the garbage collector ends with the block that it is done for."""

import gc
from collections.abc import Iterator
from contextlib import suppress

import pytest

from medexam.gc_pause import gc_paused


@pytest.fixture(autouse=True)
def _nothing_frozen(monkeypatch) -> Iterator[None]:
    """As in a process of medexam's own: the suite freezes what imports left behind."""
    monkeypatch.setattr("medexam.gc_pause._open_pauses", 0)
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.freeze()


def test_a_pause_ends_with_its_block() -> None:
    thresholds = gc.get_threshold()
    with suppress(KeyError), gc_paused():
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > thresholds[0]
        raise KeyError
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, thresholds)


def test_an_inner_pause_does_not_end_the_outer_one() -> None:
    with gc_paused():
        with gc_paused():
            pass
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
