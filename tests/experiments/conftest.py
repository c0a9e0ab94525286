"""Stored runs made by hand."""

from made_runs import answer_key, exam_questions, make_run, no_collection

__all__ = ["answer_key", "exam_questions", "make_run", "no_collection"]
