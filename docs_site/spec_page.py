"""The page of all keys of a spec, from the JSON Schema that is made of the spec's own classes."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import medexam

SCHEMA = Path(medexam.__file__).with_name("specs") / "spec.schema.json"
INTRODUCTION = """\
# Spec

Every key of a YAML spec, as `medexam schema` describes them to editors. A key that is not listed is refused.
`medexam init` writes a commented spec to start from, and `--set program.max_tokens=64` sets a key on the command line.
"""
PARTS = {"DatasetSpec": "dataset", "ModelSpec": "model", "RetrieverSpec": "retriever", "OptimizerSpec": "optimizer"}
"""Classes whose key is known -> the key."""
TYPES = {"object": "mapping", "string": "text", "number": "number", "integer": "whole number", "boolean": "true, false"}
BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def spec_page() -> str:
    """Return the page as Markdown: the experiment first, then data set, model, programs and the rest."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    parts: dict[str, Mapping[str, Any]] = schema["$defs"]
    order = [*PARTS, *sorted(name for name in parts if name not in PARTS)]
    sections = [INTRODUCTION, "## The experiment", _table(schema)]
    for name in order:
        part = parts[name]
        sections += [f"## {_heading(name, part)}", str(part.get("description", "")), _table(part)]
    return "\n\n".join(filter(None, sections)) + "\n"


def _heading(name: str, part: Mapping[str, Any]) -> str:
    kind = part.get("properties", {}).get("kind", {}).get("const")
    if kind is not None:
        return f"program: {kind}"
    return PARTS.get(name, name.removesuffix("Spec"))


def _table(part: Mapping[str, Any]) -> str:
    rows = list(_rows(part))
    return "\n".join(["| key | values | default | what |", "|---|---|---|---|", *rows]) if rows else ""


def _rows(part: Mapping[str, Any]) -> Iterator[str]:
    required = part.get("required", ())
    for key, field in part.get("properties", {}).items():
        default = "required" if key in required and "const" not in field else _default(field)
        cells = (f"`{key}`", _values(field), default, " ".join(str(field.get("description", "")).split()))
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(field: Mapping[str, Any]) -> str:
    value = field.get("default")
    if isinstance(value, dict):
        value = value.get("kind") or value.get("name") or value.get("engine")
    return "" if value is None or value in ([], "") else f"`{json.dumps(value, ensure_ascii=False)}`"


def _values(field: Mapping[str, Any]) -> str:
    """Which values a key takes: words, a type with its bounds, or the section of a part."""
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2].removesuffix("Spec")
    for several in ("anyOf", "oneOf"):
        if several in field:
            found = (_values(one) for one in field[several] if one.get("type") != "null")
            return " or ".join(dict.fromkeys(filter(None, found)))
    if field.get("type") == "array":
        inner = _values(field.get("items", {}))
        return f"list of {inner}" if inner else "list"
    bounds = [f"{sign} {field[name]}" for name, sign in BOUNDS.items() if name in field]
    return " ".join([TYPES.get(field.get("type", ""), ""), *bounds]).strip()
