"""What holds for the whole process within a block: libraries write no log lines and bars, garbage is sought seldom."""

import gc
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar


@contextmanager
def gc_seldom() -> Iterator[None]:
    """Search new objects for cycles seldom within the block.

    Python does whenever 700 more are alive: a quarter of the time of imports, and nearly half of a client's time.
    """
    young, *older = gc.get_threshold()
    gc.set_threshold(max(young, 50_000), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)


@contextmanager
def errors_only(*names: str, level: int = logging.ERROR) -> Iterator[None]:
    """Hold back what these loggers say below an error, or below a `level`, and put their levels back afterwards."""
    levels = {name: logging.getLogger(name).level for name in names}
    for name in levels:
        logging.getLogger(name).setLevel(level)
    try:
        yield
    finally:
        for name, before in levels.items():
            logging.getLogger(name).setLevel(before)


class NoBar:
    """Stands in for a bar of tqdm, and shows nothing."""

    _instances: ClassVar[set[Any]] = set()
    """DSPy clears this set of tqdm's when an evaluation begins, which breaks bars that other threads make meanwhile."""

    def __init__(self, iterable: Iterable[Any] = (), **_: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable)

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return what a bar does under this name, such as `update` and `close`: nothing."""
        return lambda *_, **__: None


@contextmanager
def quiet_dspy(*modules: str) -> Iterator[None]:
    """Hold back what DSPy says of single questions: a log line for each truncated reply, a bar for each evaluation.

    Of further `modules`, as far as they are imported, bars are held back too: none has a setting that reaches them.
    """
    names = ("dspy.evaluate.evaluate", "dspy.utils.parallelizer", *modules)
    bars: list[Any] = [(sys.modules[name], sys.modules[name].tqdm) for name in names if name in sys.modules]
    for module, bar in bars:
        # Some import the class, others the package that has it.
        module.tqdm = NoBar if isinstance(bar, type) else SimpleNamespace(tqdm=NoBar)
    try:
        with errors_only("dspy.clients.lm"):
            yield
    finally:
        for module, bar in bars:
            module.tqdm = bar


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hold back transformers' progress bars and log lines, and put its settings back afterwards."""
    import transformers

    logs: Any = transformers.utils.logging
    bars = logs.is_progress_bar_enabled()
    logs.disable_progress_bar()
    try:
        with errors_only("transformers"):
            yield
    finally:
        if bars:
            logs.enable_progress_bar()
