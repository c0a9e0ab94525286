"""Bars on a terminal while something is asked, built or trained."""

from medexam.cli.progress.bars import TrainingProgress, open_bars
from medexam.cli.progress.run import TerminalProgress

__all__ = ["TerminalProgress", "TrainingProgress", "open_bars"]
