"""Names of parts: those that ship, those that installed packages add, and the user's own code."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, get_args

from pydantic import AfterValidator

from medexam.plugins import added_names, is_own_name, ships
from medexam.text import nearest

RETRIEVERS = "medexam.retrievers"
ENGINES = "medexam.engines"
BENCHMARKS = "medexam.benchmarks"
OWN_METRICS = "medexam.metrics"
PROGRAMS = "medexam.programs"
KIND_FILES = "medexam.kinds"
"""The entry point groups of short names, by what they name."""


def part_of(group: str, shipped: Any = None) -> AfterValidator:
    """Return what checks a field that names a part: one of the literal `shipped`, an added one, or code."""
    return AfterValidator(lambda name: part_name(name, get_args(shipped), group))


def part_name(name: str, shipped: Collection[str], group: str) -> str:
    """Return `name` if it ships with the core or beside it, else the code that it means, so that a stored run needs
    neither folder nor entry point; raise `ValueError` if it is neither.
    """
    if name in shipped or ships(name, group):
        return name
    if name in added_names(group):
        return f"{group}:{name}"
    if not is_own_name(name, group):
        names = [*shipped, *added_names(group)]
        near = f": did you mean {nearest(name, names)}?" if nearest(name, names) else ""
        problem = f"is none of {', '.join(names)}{near}" if names else "names no code"
        raise ValueError(f"{name!r} {problem}; your own is package.module:Name or ./file.py:Name")
    place, _, attribute = name.rpartition(":")
    return f"{Path(place).expanduser().absolute()}:{attribute}" if place.endswith(".py") else name


def class_name(name: str) -> str:
    """Return `package.module.Name` as `package.module:Name`, and any other name as it is."""
    module, dot, attribute = name.rpartition(".")
    return f"{module}:{attribute}" if dot and ":" not in name else name


def short_name(name: str) -> str:
    """Return how a part is called in tables: as the object that a name means."""
    return name.rpartition(":")[2]
