"""Writes `medexam/specs/spec.schema.json`, which `medexam schema` prints: `python docs_site/spec_schema.py`.

Pydantic writes the schema. Here the docs under fields are added, and the short forms that a file may use.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Union

from pydantic import TypeAdapter

from medexam.specs.base import Spec
from medexam.specs.dataset import ColumnsSpec
from medexam.specs.experiment import ExperimentSpec
from medexam.specs.matrix import SHORT_FORMS
from medexam.specs.programs.kinds import KINDS, list_settings
from medexam.specs.programs.programs import FlowSpec, OwnSpec
from medexam.specs.programs.steps import STEPS
from medexam.specs.programs.words import SIDE_WORDS, TAKES, WORDS

SCHEMA = Path(__file__).parents[1] / "medexam" / "specs" / "spec.schema.json"


def build_schema() -> dict[str, Any]:
    """Build the schema of an experiment's YAML file."""
    schema = ExperimentSpec.model_json_schema()
    models = {model.__name__: model for model in _subclasses(Spec)}
    programs = TypeAdapter(Union[(*KINDS.values(), OwnSpec)]).json_schema(ref_template="#/$defs/{model}")
    parts: dict[str, Any] = {**schema.pop("$defs"), **programs["$defs"]}
    for name, part in {**parts, ExperimentSpec.__name__: schema}.items():
        if name in models:
            _describe(part, models[name])
    for name, part in parts.items():
        kind = part.get("properties", {}).get("kind", {})
        if "const" in kind and name != FlowSpec.__name__:
            # Each has a default in Python; a file must say which program it means.
            part["required"] = sorted({*part.get("required", ()), "kind"})
        elif name == "OwnSpec":
            kind["not"] = {"enum": sorted(KINDS)}
    added = {
        "type": "object",
        "description": "A kind that an installed package adds.",
        "properties": {"kind": {"type": "string", "not": {"enum": sorted(KINDS)}, "pattern": r"^[^:.]+$"}},
        "required": ["kind"],
    }
    schema["properties"]["program"]["anyOf"] = [*programs["anyOf"], added]
    _shorten_steps(parts, schema["properties"]["program"]["anyOf"])
    parts["RetrieverSpec"] = {"anyOf": [{"type": "string"}, parts["RetrieverSpec"]]}
    columns = parts["ColumnsSpec"]["properties"]
    columns |= {other: columns[field] for other, field in ColumnsSpec.other_names.items()}
    fields = schema["properties"]
    for name in SHORT_FORMS:
        notes = {key: fields[name].pop(key) for key in ("description", "default") if key in fields[name]}
        # Of the kinds of programs `anyOf`: an editor that fails to match says what is near, not that several match.
        choices = fields[name].pop("anyOf", None) or [fields[name]]
        words = [{"enum": sorted(KINDS)}] if name == "program" else []
        fields[name] = {**notes, "anyOf": [*words, {"type": "string"}, *choices]}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema, "$defs": parts}


def _shorten_steps(parts: dict[str, Any], programs: list[Any]) -> None:
    """Tell steps and words by what each may say, and let a text or one step stand for what it means."""
    step, words = parts["Step"], parts["WordsSpec"]
    step["properties"]["use"] = {
        "description": step["properties"]["use"]["description"],
        "anyOf": [{"enum": sorted(KINDS)}, {"type": "string"}, *programs],
    }
    one = {"$ref": "#/$defs/Step"}
    step["properties"]["all"] = {
        "description": step["properties"]["all"]["description"],
        "type": "array",
        "items": {"anyOf": [one, {"type": "array", "items": one}]},
        "minItems": 2,
    }
    needed = {name: [name, *(["do"] if "do" in keys else [])] for name, keys in STEPS.items()}
    steps = [_part_of(step, (name, *keys), needed[name]) for name, keys in STEPS.items()]
    parts["Step"] = {"title": "Step", "anyOf": steps}
    kinds = {group: [kind for kind, about in WORDS.items() if about["asks"] == group] for group in TAKES}
    choices = [_part_of(words, ("kind", *TAKES[group]), []) for group in TAKES]
    for choice, (group, names) in zip(choices, kinds.items(), strict=True):
        choice["properties"]["kind"] = {"enum": names}
        choice["required"] = ["group"] if group == "aside" else ["kind"]
    parts["WordsSpec"] = {"title": "WordsSpec", "anyOf": [{"enum": [*WORDS, *SIDE_WORDS]}, *choices]}


def _part_of(whole: dict[str, Any], names: Iterable[str], required: list[str]) -> dict[str, Any]:
    """Return the schema of an object that has some of the fields of another alone."""
    properties = {name: whole["properties"][name] for name in names}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _subclasses(model: type[Spec]) -> Iterator[type[Spec]]:
    for child in model.__subclasses__():
        yield child
        yield from _subclasses(child)


def _describe(part: dict[str, Any], model: type[Spec]) -> None:
    """Put the docs under the fields, and let one value stand for a list of one, as `Spec` does."""
    docs = _docs(model)
    if "asks" in (template := getattr(model, "template", {})):
        docs |= {name: _docs(source)[name] for name, source in list_settings(template).items()}
    docs |= {field.alias: docs[name] for name, field in model.model_fields.items() if field.alias and name in docs}
    for name, field in part.get("properties", {}).items():
        field.pop("title", None)
        if name in docs and "description" not in field:
            field["description"] = docs[name]
        for choices in (field, *field.get("anyOf", ())):
            if choices.get("type") == "array" and "type" in choices.get("items", {}):
                item_schema, list_schema = choices["items"], dict(choices)
                if choices is field:
                    notes = {key: list_schema.pop(key) for key in ("description", "default") if key in list_schema}
                    field.clear()
                    field.update({**notes, "anyOf": [item_schema, list_schema]})
                else:
                    field["anyOf"] = [item_schema, *field["anyOf"]]
                break


def _docs(model: type[Spec]) -> dict[str, str]:
    """Map each field to its docs, in the words of the nearest class that has some."""
    bases = [base for base in reversed(model.__mro__) if issubclass(base, Spec)]
    return {name: doc for base in bases for name, doc in _field_docs(base)}


def _field_docs(model: type[Spec]) -> Iterator[tuple[str, str]]:
    """Yield each field that the class itself declares, with the text under it."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    except OSError:
        return  # a class that is made of a file or a table has its docs with its fields
    assert isinstance(tree, ast.ClassDef)  # noqa: S101
    for field, doc in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(doc, ast.Expr):
            text = ast.literal_eval(doc.value) if isinstance(doc.value, ast.Constant) else ""
            yield field.target.id, " ".join(str(text).split())


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(build_schema(), indent=2) + "\n", encoding="utf-8")
