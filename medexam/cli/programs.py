"""A program that ships, as YAML with its steps."""

import inspect
from collections.abc import Mapping
from typing import Any

import yaml

from medexam.errors import SpecError
from medexam.specs.base import Spec, validate
from medexam.specs.programs.kinds import AnyProgram, KindSpec, all_kinds
from medexam.text import nearest

_EXAMPLES = {"signature": "question, options -> answer: int"}
"""Parameters that a spec must set -> an example."""


class _Shown(Spec):
    program: AnyProgram


class _Dumper(yaml.SafeDumper):
    """Writes the innermost mappings in one line each, as the files that ship do."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - what is there twice is written twice
        """Name nothing."""
        return True


def render_program(kind: str, settings: Mapping[str, Any]) -> str:
    """Return the YAML of a kind with `settings`, by their keys; of one without steps, the step that calls it.

    Raises `SpecError` for another kind, and for settings that it does not take.
    """
    if (spec_class := (kinds := all_kinds()).get(kind)) is None:
        suggestion = nearest(kind, list(kinds))
        advice = f"did you mean {suggestion}? " if suggestion else ""
        raise SpecError(f"no program {kind!r}: {advice}the kinds are {', '.join(kinds)}")
    tree = {"kind": kind} | {key.removeprefix("program."): value for key, value in settings.items()}
    required = [name for name, field in spec_class.model_fields.items() if field.is_required() and name not in tree]
    tree |= {name: _EXAMPLES.get(name, "...") for name in required}
    document: Mapping[str, Any] = {"name": kind, "steps": [{"use": tree}]}
    if issubclass(spec_class, KindSpec):
        program = validate(_Shown, {"program": tree}).program
        assert isinstance(program, KindSpec)  # noqa: S101
        document = program.document
    body = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    return f"# {(inspect.getdoc(spec_class) or '').partition(chr(10))[0]}\n{body}"
