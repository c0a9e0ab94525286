"""Keeping the log lines and progress bars of libraries off the terminal."""

import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


def errors_only(*loggers: str) -> AbstractContextManager[None]:
    """Hold back what these loggers say below an error, and put their levels back afterwards."""
    return _held_back(loggers, logging.ERROR)


def silent(*loggers: str) -> AbstractContextManager[None]:
    """Hold back all that these loggers say, where what they say of errors is raised too."""
    return _held_back(loggers, logging.CRITICAL + 1)


@contextmanager
def _held_back(loggers: Iterable[str], level: int) -> Iterator[None]:
    held = [logging.getLogger(name) for name in loggers]
    levels = [logger.level for logger in held]
    for logger in held:
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, level in zip(held, levels, strict=True):
            logger.setLevel(level)


def truncation_unlogged() -> AbstractContextManager[None]:
    """Truncated replies are data here, counted and reported; DSPy need not log each of them."""
    return errors_only("dspy.clients.lm")


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
