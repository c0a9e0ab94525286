"""Keeping the log lines and progress bars of libraries off the terminal."""

import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar


def errors_only(*loggers: str) -> AbstractContextManager[None]:
    """Hold back what these loggers say below an error, and put their levels back afterwards."""
    return _held_back(loggers, logging.ERROR)


def silent(*loggers: str) -> AbstractContextManager[None]:
    """Hold back all that these loggers say, where what they say of errors is raised too."""
    return _held_back(loggers, logging.CRITICAL + 1)


@contextmanager
def _held_back(loggers: Iterable[str], level: int) -> Iterator[None]:
    quiet_loggers = [logging.getLogger(name) for name in loggers]
    levels = [logger.level for logger in quiet_loggers]
    for logger in quiet_loggers:
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, level in zip(quiet_loggers, levels, strict=True):
            logger.setLevel(level)


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
def without_bars(*modules: str) -> Iterator[None]:
    """Have these modules, as far as they are imported, show no bars of tqdm.

    Their name `tqdm` is replaced: neither DSPy nor GEPA has a setting that reaches these bars.
    """
    replaced: list[Any] = [module for name in modules if (module := sys.modules.get(name)) is not None]
    bars = [module.tqdm for module in replaced]
    for module, bar in zip(replaced, bars, strict=True):
        # Some import the class, others the package that has it.
        module.tqdm = NoBar if isinstance(bar, type) else SimpleNamespace(tqdm=NoBar)
    try:
        yield
    finally:
        for module, bar in zip(replaced, bars, strict=True):
            module.tqdm = bar


@contextmanager
def quiet_dspy() -> Iterator[None]:
    """Hold back what DSPy says of single questions: a log line for each truncated reply, a bar for each evaluation.

    Truncated replies are counted and reported here, and the bar of a run stands in the same place.
    """
    with errors_only("dspy.clients.lm"), without_bars("dspy.evaluate.evaluate", "dspy.utils.parallelizer"):
        yield


@contextmanager
def quiet_matplotlib() -> Iterator[None]:
    """Hold back what matplotlib says of its fonts: of their cache, and of signs that they lack, which it names."""
    with errors_only("matplotlib"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        yield


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hold back transformers' progress bars and log lines, and put its settings back afterwards."""
    import transformers

    logs: Any = transformers.utils.logging
    level, bars = logs.get_verbosity(), logs.is_progress_bar_enabled()
    logs.set_verbosity_error()
    logs.disable_progress_bar()
    try:
        yield
    finally:
        logs.set_verbosity(level)
        if bars:
            logs.enable_progress_bar()
