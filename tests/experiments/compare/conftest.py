"""Stored runs over four small exams, and the command line."""

from command_line import _untracked, medexam
from small_exams import exam_files, make_run

__all__ = ["_untracked", "exam_files", "make_run", "medexam"]
