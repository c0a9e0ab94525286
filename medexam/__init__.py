"""Declarative LLM programs for medical exams, built on DSPy."""

from importlib.metadata import version

__version__ = version("medexam")
__all__ = ["__version__"]
