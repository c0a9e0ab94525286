"""Declarative LLM programs for medical exams, built on DSPy."""

__version__ = "0.1.0"
__all__ = ["__version__"]
