"""The command line in this process."""

from command_line import _untracked, failing, medexam, tracked

__all__ = ["_untracked", "failing", "medexam", "tracked"]
