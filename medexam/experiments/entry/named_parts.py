"""What a user names in a word where a spec has lines: a table of questions as SPEC, and a server by its address."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from medexam.errors import DatasetError, EngineError, SpecError
from medexam.specs import load_document
from medexam.specs.loading import SpecSource
from medexam.specs.matrix import listed, sampling_of
from medexam.specs.model import ADDRESSES, read_model

Document = dict[str, Any]


def read_spec(spec: SpecSource, tell: Callable[[str], None] | None = None) -> Document:
    """Read the document of a spec as `load_document` does; a file of questions is a spec if all in it is clear.

    `tell` is called with how such a file is read, a line each. Raises `SpecError` with what is to decide in a file that
    can be read in several ways.
    """
    path = Path(spec) if isinstance(spec, (str, Path)) else None
    if path is None or not path.suffix or not path.is_file() or _is_spec(path):
        return load_document(spec)
    from medexam.datasets.own.proposing import propose

    try:
        proposal = propose(path)
    except DatasetError as error:
        raise SpecError(f"{error}; a spec is a file NAME.yaml, and `medexam init {path}` writes one") from None
    if proposal.open:
        decisions = "; ".join(f"{name}: {decision}" for name, decision in proposal.open.items())
        raise SpecError(
            f"{path} can be read in several ways: `medexam init {path}` writes a spec in which you choose ({decisions})"
        )
    if tell is not None:
        for line in proposal.notes:
            tell(line)
    name = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in path.stem)[:64]
    return {"name": name, "dataset": yaml.safe_load("\n".join(proposal.lines(path.absolute())))}


def _is_spec(path: Path) -> bool:
    """Return whether a file is a spec by its ending, or as JSON by its keys."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return True
    try:
        document = json.loads(path.read_bytes()) if path.suffix.lower() == ".json" else None
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and not {"dataset", "program", "model", "experiments"}.isdisjoint(document)


def ask_addresses(
    document: Mapping[str, Any], overrides: Mapping[str, Any], *, only_look: bool
) -> tuple[Document, Document]:
    """Return both with each address that stands for a model as the fields of a model, by what answers there.

    With `only_look`, a server that is not there is taken to be vLLM; else it raises `EngineError`.
    """
    tree, changes = dict(document), dict(overrides)
    part = changes if "model" in changes else tree
    models = listed(part.get("model"))
    if not any(map(_is_address, models)):
        return tree, changes
    keys = {name: changes.get(f"model.{name}") for name in ("api_key_env", "api_key_file")}
    sampling = sampling_of(tree.get("model"))
    if "model" in tree:
        tree["model"] = sampling
    filled = [{**sampling, **_find(one, keys, only_look=only_look)} if _is_address(one) else one for one in models]
    part["model"] = filled if isinstance(part["model"], list) else filled[0]
    return tree, changes


def _find(address: str, keys: Mapping[str, Any], *, only_look: bool) -> Document:
    from medexam.serve.naming import find_server

    try:
        return find_server(address, **keys)
    except EngineError:
        if not only_look:
            raise
        # The plan itself warns that the server is not there.
        return read_model(address)


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(ADDRESSES)
