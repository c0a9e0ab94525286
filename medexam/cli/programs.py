"""A program that ships, as YAML with its steps."""

import inspect
from collections.abc import Mapping
from typing import Any, cast

import yaml

from medexam.errors import SpecError
from medexam.specs.base import Spec, validate
from medexam.specs.programs.kinds import AnyProgram, KindSpec, all_kinds
from medexam.text import nearest

_LEAVES = {
    "flow": "It is your own list of steps: docs/composing.md.",
    "imported": "It is what was imported from a file.",
}
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
    """Return the YAML of a kind with `settings`, by their keys; of one that is no flow, what it is and how it is used.

    Raises `SpecError` for another kind, and for settings that it does not take.
    """
    if (spec_class := (kinds := all_kinds()).get(kind)) is None:
        suggestion = nearest(kind, list(kinds))
        advice = f"did you mean {suggestion}? " if suggestion else ""
        raise SpecError(f"no program {kind!r}: {advice}the kinds are {', '.join(kinds)}")
    tree = {key.removeprefix("program."): value for key, value in settings.items()}
    required = [name for name, field in spec_class.model_fields.items() if field.is_required() and name not in tree]
    if issubclass(spec_class, KindSpec):
        tree |= {name: _EXAMPLES.get(name, "...") for name in required}
        program = validate(_Shown, {"program": {"kind": kind, **tree}}).program
        return f"# {spec_class.__doc__}\n" + _dump(cast("KindSpec", program).document)
    return _leaf(kind, dict.fromkeys(required, "...") if required else tree, inspect.getdoc(spec_class) or "")


def _dump(document: Mapping[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)


def _leaf(kind: str, tree: Mapping[str, Any], words: str) -> str:
    """Return what a kind is that is no flow, and the step that lets it answer."""
    lines = [words.partition("\n")[0], _LEAVES.get(kind, "It is not a list of steps: a step runs it by `use`.")]
    program: Any = {"kind": kind, **tree} if tree else kind
    step = {"name": kind, "steps": [{"use": program}]}
    document = "" if kind in _LEAVES else yaml.dump(step, Dumper=_Dumper, sort_keys=False, default_flow_style=None)
    return "".join(f"# {line}\n" for line in lines) + document
