"""The JSON Schema of a spec, with the words of the classes, so that editors complete and check a YAML file.

Pydantic writes the schema. Here the docs under fields are added, and the short forms that a file may use.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medexam.specs.base import Spec
from medexam.specs.columns import OTHER_NAMES
from medexam.specs.experiment import ExperimentSpec
from medexam.specs.matrix import SHORT_FORMS
from medexam.specs.programs.flows import FlowSpec
from medexam.specs.programs.kinds import KINDS

SCHEMA = Path(__file__).with_name("spec.schema.json")
"""The schema as it ships, for editors; `medexam schema` prints the same."""


def spec_schema() -> dict[str, Any]:
    """Build the schema of an experiment's YAML file."""
    schema = ExperimentSpec.model_json_schema()
    models = {model.__name__: model for model in _subclasses(Spec)}
    parts: dict[str, Any] = schema.pop("$defs")
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
    _shorten_steps(parts)
    parts["RetrieverSpec"] = {"anyOf": [{"type": "string"}, parts["RetrieverSpec"]]}
    columns = parts["ColumnsSpec"]["properties"]
    columns |= {other: columns[field] for other, field in OTHER_NAMES.items()}
    fields = schema["properties"]
    for name in SHORT_FORMS:
        notes = {key: fields[name].pop(key) for key in ("description", "default") if key in fields[name]}
        # Of the kinds of programs `anyOf`: an editor that fails to match says what is near, not that several match.
        choices = fields[name].pop("oneOf", None) or [fields[name]]
        words = [{"enum": sorted(KINDS)}] if name == "program" else []
        fields[name] = {**notes, "anyOf": [*words, {"type": "string"}, *choices]}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema, "$defs": parts}


def _shorten_steps(parts: dict[str, Any]) -> None:
    """Let the kind of a program stand for it in `use`, and one step for a branch."""
    use = parts["UseStep"]["properties"]["use"]
    use["anyOf"] = [{"enum": sorted(KINDS)}, {"type": "string"}, *use.pop("oneOf")]
    (branches,) = (
        choice for choice in parts["AllStep"]["properties"]["all"]["anyOf"] if choice["items"].get("type") == "array"
    )
    branches |= {"items": {"anyOf": [*branches["items"]["items"]["oneOf"], branches["items"]]}, "minItems": 2}
    parts["AllStep"]["properties"]["all"] = branches


def _subclasses(model: type[Spec]) -> Iterator[type[Spec]]:
    for child in model.__subclasses__():
        yield child
        yield from _subclasses(child)


def _describe(part: dict[str, Any], model: type[Spec]) -> None:
    """Put the docs under the fields, and let one value stand for a list of one, as `Spec` does."""
    docs = {name: doc for base in reversed(model.__mro__) if issubclass(base, Spec) for name, doc in _field_docs(base)}
    docs |= {field.alias: docs[name] for name, field in model.model_fields.items() if field.alias and name in docs}
    for name, field in part.get("properties", {}).items():
        field.pop("title", None)
        if name in docs:
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


def _field_docs(model: type[Spec]) -> Iterator[tuple[str, str]]:
    """Yield each field that the class itself declares, with the text under it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(tree, ast.ClassDef)  # noqa: S101
    for field, doc in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(doc, ast.Expr):
            text = ast.literal_eval(doc.value) if isinstance(doc.value, ast.Constant) else ""
            yield field.target.id, " ".join(str(text).split())


def complete_override(incomplete: str) -> list[str]:
    """List `KEY=` for the keys of a spec that begin so and `KEY.` for the mappings; behind the `=`, its values."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    key, equals, _ = incomplete.partition("=")
    *parents, _ = key.split(".")
    nodes = [schema]
    for name in key.split(".") if equals else parents:
        nodes = [child for node in nodes for child in _children(node, schema).get(name, ())]
    prefix = ".".join([*parents, ""])
    if equals:
        words = {f"{key}={json.dumps(value)}".replace('"', "") for node in nodes for value in _values(node, schema)}
    else:
        children = [item for node in nodes for item in _children(node, schema).items()]
        words = {
            f"{prefix}{name}{'.' if any(_children(child, schema) for child in found) else '='}"
            for name, found in children
        }
    return sorted(word for word in words if word.startswith(incomplete))


def _variants(node: dict[str, Any], schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a part of the schema may be, behind its references."""
    if "$ref" in node:
        yield from _variants(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    yield node
    for variant in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _variants(variant, schema)


def _children(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Map the keys of a mapping to what may stand there."""
    children: dict[str, list[dict[str, Any]]] = {}
    for variant in _variants(node, schema):
        for name, child in variant.get("properties", {}).items():
            children.setdefault(name, []).append(child)
    return children


def _values(node: dict[str, Any], schema: dict[str, Any]) -> Iterator[Any]:
    for variant in _variants(node, schema):
        yield from variant.get("enum", ())
        if "const" in variant:
            yield variant["const"]
        if variant.get("type") == "boolean":
            yield from (True, False)
