"""Keeping the log lines and progress bars of libraries off the terminal."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


@contextmanager
def errors_only(*loggers: str) -> Iterator[None]:
    """Hold back what these loggers say below an error, and put their levels back afterwards."""
    held = [logging.getLogger(name) for name in loggers]
    levels = [logger.level for logger in held]
    for logger in held:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(held, levels, strict=True):
            logger.setLevel(level)


def truncation_unlogged() -> AbstractContextManager[None]:
    """Truncated replies are data here, counted and reported; DSPy need not log each of them."""
    return errors_only("dspy.clients.lm")


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
