"""The JSON Schema of a spec, with the words of the classes, so that editors and shells complete a YAML file's keys.

`docs_site/spec_schema.py` writes it from the classes of specs.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).with_name("spec.schema.json")
"""The schema as it ships, for editors; `medexam schema` prints the same."""


def spec_schema() -> dict[str, Any]:
    """Read the schema of an experiment's YAML file."""
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return schema


def complete_override(incomplete: str) -> list[str]:
    """List `KEY=` for the keys of a spec that begin so and `KEY.` for the mappings; behind the `=`, its values."""
    schema = spec_schema()
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
            f"{prefix}{name}{'.' if any(_children(child, schema) for child in nodes_below) else '='}"
            for name, nodes_below in children
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
