"""A program that ships, as YAML with its steps."""

import inspect
from collections.abc import Mapping
from typing import Any

import yaml

from medexam.specs import CellSpec
from medexam.specs.base import validate
from medexam.specs.programs.kinds import KindSpec, find_kind

_EXAMPLES: Mapping[str, Any] = {
    "signature": "question, options -> answer: int",
    "steps": [{"ask": "question, options -> answer"}],
}
"""Parameters that a spec must set -> an example."""


class _Dumper(yaml.SafeDumper):
    """Writes the innermost mappings in one line each, as the files that ship do."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - what is there twice is written twice
        """Name nothing."""
        return True


def render_program(kind: str, settings: Mapping[str, Any]) -> str:
    """Return the YAML of a kind with `settings`, by their keys; of one without steps, the step that calls it.

    Raises `SpecError` for another kind, and for settings that it does not take.
    """
    fields = {} if (spec := find_kind(kind)) is None else spec.model_fields
    required = {name: _EXAMPLES.get(name, "...") for name, field in fields.items() if field.is_required()}
    tree = {"kind": kind, **required} | {key.removeprefix("program."): value for key, value in settings.items()}
    program = validate(CellSpec, {"name": "program", "program": tree}).program
    document = program.document if isinstance(program, KindSpec) else {"name": kind, "steps": [{"use": tree}]}
    body = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    return f"# {(inspect.getdoc(type(program)) or '').partition(chr(10))[0]}\n{body}"
