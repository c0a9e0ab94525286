"""Fixtures of programs that are asked one question."""

from one_question import ask, finder

__all__ = ["ask", "finder"]
