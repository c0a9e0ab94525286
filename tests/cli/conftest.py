"""The command line in this process, and specs over scripted replies."""

from command_line import _untracked, medexam, refused, run, spec, tracked

__all__ = ["_untracked", "medexam", "refused", "run", "spec", "tracked"]
