"""How a setting is described where it is declared, so that nobody declares it again as a flag.

A model of settings is a frozen dataclass whose fields are `Annotated` with a `Setting`. It knows no command line.
"""

from collections.abc import Callable
from dataclasses import Field, dataclass
from typing import Any, get_args


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field means, and which values it takes."""

    help: str
    """What it does and its unit, or what its default None means."""
    flag: str | None = None
    """Its flag; None for the field's name with dashes."""
    metavar: str | None = None
    """The word that stands for its value; None for the type's own."""
    min: float | None = None
    max: float | None = None
    panel: str | None = None
    """The heading under which the help lists it; None for the common one."""
    parse: Callable[[str], Any] | None = None
    """Reads its value from the command line's text, or raises a `MedExamError`; None where the type says how."""
    complete: Callable[[str], list[str]] | None = None
    """Lists for a shell what a beginning of its value may become; None where nothing is known."""

    @staticmethod
    def of(field: Field[Any]) -> "Setting | None":
        """Return the one that a field is annotated with; None if it has none."""
        return next((note for note in get_args(field.type) if isinstance(note, Setting)), None)

    def flag_of(self, name: str) -> str:
        """Return the flag of the field with this name."""
        return self.flag or f"--{name.replace('_', '-')}"
