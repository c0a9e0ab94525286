"""The JSON Schema of a spec, which completes a YAML file's keys in editors and shells, and a first spec to start from.

`docs_site/spec_schema.py` writes the schema from the classes of specs.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

SCHEMA = Path(__file__).with_name("spec.schema.json")
"""The schema as it ships, for editors; `medexam schema` prints the same."""
_EMBEDDED = """\
  engine: embedded               # transformers in this process; SmolLM2 unless name or path says otherwise
  # name: Qwen/Qwen3-0.6B        # a model of the Hugging Face hub
  # path: ./my_model             # or a folder"""
_SERVED = """\
  engine: vllm
  endpoints: {}          # or a list of replicas
  # engine: litellm              # for another server with OpenAI's API; with name: openai/MODEL"""


def spec_schema() -> dict[str, Any]:
    """Read the schema of an experiment's YAML file."""
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return schema


def starter_spec(file: Path, endpoint: str | None) -> str:
    """Write the text of a spec to be written to `file`, which asks the sample that ships, with a comment on each line.

    `endpoint` is the base address of a vLLM server, None takes the embedded engine.
    """
    text = Path(__file__).with_name("starter.txt").read_text(encoding="utf-8")
    model = _EMBEDDED if endpoint is None else _SERVED.format(endpoint)
    return Template(text).substitute(
        schema=SCHEMA.as_posix(), file=file.name, name=file.stem.replace(" ", "_"), model=model
    )


def complete_override(incomplete: str) -> list[str]:
    """List `KEY=` for the keys of a spec that begin so and `KEY.` for the mappings; behind the `=`, its values."""
    key, equals, _ = incomplete.partition("=")
    names = key.split(".")
    schema = spec_schema()
    nodes = [*_variants(schema, schema)]
    for name in names if equals else names[:-1]:
        nodes = [child for node in nodes for child in _variants(node.get("properties", {}).get(name, {}), schema)]
    if equals:
        values = [
            value for node in nodes for value in (*node.get("enum", ()), *([node["const"]] if "const" in node else ()))
        ]
        values += [value for node in nodes if node.get("type") == "boolean" for value in (True, False)]
        words = {f"{key}={json.dumps(value)}".replace('"', "") for value in values}
    else:
        children = [item for node in nodes for item in node.get("properties", {}).items()]
        words = {
            ".".join([*names[:-1], name])
            + ("." if any("properties" in one for one in _variants(child, schema)) else "=")
            for name, child in children
        }
    return sorted(word for word in words if word.startswith(incomplete))


def _variants(node: dict[str, Any], schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a part of the schema may be, behind its references."""
    yield node
    for variant in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _variants(variant, schema)
    if "$ref" in node:
        yield from _variants(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
