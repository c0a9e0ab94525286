"""What a shell is told when a reader completes a word of a command: names of specs, keys of a spec, and ids of runs.

A word is completed while the reader waits, so this reads names of files and imports nothing heavy.
"""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import typer

SUFFIXES = {".yaml", ".yml"}


def complete_spec(incomplete: str) -> list[str]:
    """List shipped experiments, data sets, and YAML files that begin so."""
    from medexam.specs import library_names
    from medexam.specs.catalogue import CATALOGUE

    names = {*library_names(), *CATALOGUE}
    files = {str(path) for path in _beside(incomplete) if path.suffix in SUFFIXES}
    return sorted(name for name in names | files if name.startswith(incomplete))


def complete_run(context: typer.Context, incomplete: str) -> list[str]:
    """List ids of runs in the runs directory that begin so, digests that do, and folders."""
    from medexam.experiments.store.paths import default_runs_dir

    root = context.params.get("runs_dir") or default_runs_dir()
    ids = [child.name for child in root.iterdir() if (child / "spec.json").is_file()] if root.is_dir() else []
    digests = (name.rpartition("-")[2] for name in ids)
    folders = (str(path) for path in _beside(incomplete) if path.is_dir())
    return sorted({name for name in (*ids, *digests, *folders) if name.startswith(incomplete)})


def complete_override(incomplete: str) -> list[str]:
    """List `KEY=` for the keys of a spec that begin so and `KEY.` for the mappings; behind the `=`, its values."""
    schema = json.loads((files("medexam.specs") / "spec.schema.json").read_text(encoding="utf-8"))
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


def _beside(incomplete: str) -> list[Path]:
    """List what lies where the path that is being written points to."""
    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    return list(folder.iterdir()) if folder.is_dir() else []
