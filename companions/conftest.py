"""The command line in this process, and stored runs made by hand."""

from command_line import _untracked, install, medexam, tracked
from made_runs import answer_key, exam_questions, make_run, no_collection

__all__ = [
    "_untracked",
    "answer_key",
    "exam_questions",
    "install",
    "make_run",
    "medexam",
    "no_collection",
    "tracked",
]
