"""The functions of PDFium by their names, loaded when the first is called: other commands run without the library."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Find a function or constant of PDFium."""
    value = globals()[name] = getattr(import_module("pypdfium2.raw"), name)
    return value
