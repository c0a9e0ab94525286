"""The command line in this process, specs over scripted replies, and packages with entry points."""

from command_line import _untracked, install, medexam, refused, run, spec, tracked

__all__ = ["_untracked", "install", "medexam", "refused", "run", "spec", "tracked"]
