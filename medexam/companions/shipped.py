"""The commands of the companions that ship. The core reads this table and imports no companion.

An installed package adds commands by entry points of the group `medexam.commands`; these stand here, so that a help
imports nothing and reads no metadata, and an installation whose metadata is older than its sources lacks no command.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class CompanionCommand(NamedTuple):
    """Where a command is, and what the help that lists it says."""

    target: str
    """`package.module:Name` of a function or a `typer.Typer`, as an entry point's value."""
    line: str
    """The first line of its own help."""
    after: str
    """The command that it follows in the help."""


SHIPPED_COMMANDS: Mapping[str, CompanionCommand] = MappingProxyType(
    {
        "audit": CompanionCommand(
            "medexam.companions.audit.commands:app",
            "Have people judge answers, and compare measures with them.",
            "index",
        ),
    }
)
"""Name of a command, groups before it -> the command."""
