"""A program that is asked one question."""

from one_question import ask

__all__ = ["ask"]
