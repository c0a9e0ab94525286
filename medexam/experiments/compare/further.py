"""Which further parts of a comparison are asked for, on the command line and in Python."""

from dataclasses import fields
from functools import partial
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.compare.ensembles import find_together
from medexam.experiments.compare.margins import find_equivalence
from medexam.experiments.compare.protocols import find_protocols
from medexam.experiments.compare.section import Finder
from medexam.plugins import load_added
from medexam.specs.programs.steps import Combine

SECTIONS = "medexam.sections"
"""The group in which packages add parts: frozen dataclasses whose fields typer reads, with a method `finders`."""


def find_further(
    equivalent_within: float | None = None,
    *,
    ensemble: Combine | None = None,
    protocol: bool = False,
    **added: Any,
) -> list[Finder]:
    """Return the finders of the parts; raises `SpecError` for a value that cannot be, and for a part that is not there.

    `equivalent_within` is a margin in percentage points; None tests none. `ensemble` combines the answers of all runs.
    `protocol` says where their protocols differ. `added` are the settings of installed packages' parts, each of which
    looks without being asked to if its settings say so.
    """
    finders: list[Finder] = []
    if equivalent_within is not None:
        if not 0 < equivalent_within < 100:
            raise SpecError(
                f"--equivalent-within {equivalent_within:g}: give percentage points over 0 and under 100, such as 2.0"
            )
        finders.append(partial(find_equivalence, equivalent_within))
    if ensemble is not None:
        finders.append(partial(find_together, ensemble))
    for settings in load_added(SECTIONS).values():
        names = [field.name for field in fields(settings) if field.name in added]
        finders += settings(**{name: added.pop(name) for name in names}).finders()
    if added:
        raise SpecError(f"{', '.join(added)}: no installed package adds this part of a comparison")
    if protocol:
        finders.append(find_protocols)
    return finders
