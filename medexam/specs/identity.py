"""The identity of a run: a digest over everything that an answer depends on, and over nothing else.

Which questions were selected is left out, so that widening the years or dropping the limit asks only the new
questions; so is where a server listens, and what a file is called. A control asks no model, so the model is left out of
its digest; where nothing is sampled, so is the sampling.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from medexam.specs.base import walk
from medexam.specs.experiment import CellSpec
from medexam.specs.model import SAMPLING, ModelSpec
from medexam.specs.programs.programs import describe

IDENTITY_SCHEMA = 8
"""Raised when an identity covers other things than before; runs of another schema are not continued."""
READER_VERSION = 4
"""Raised where code reads a reply, a score or a control otherwise than before: the same replies mean other answers."""
_DRAWING = ("top_p", "top_k", "min_p", "stop")
_REQUEST = ("reasoning_effort", "thinking", "extra_body")


def build_identity(
    cell: CellSpec,
    *,
    fingerprint: str,
    words: Mapping[str, Any],
    model: Mapping[str, Any] | None = None,
    models: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    prompts: Sequence[str | None] | None = None,
    **others: str | Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Describe what an answer of this cell depends on, as JSON-ready data in one form however the spec is written.

    `fingerprint` is the SHA-256 of the data set's content; `words` is the text of the prompts and examples; `model` is
    what `known_model` knows of the model that is asked, and `models` the same of further ones; `prompts` is a hash of
    what is sent for each invented question. `others` are covered where there is such a thing: `retriever`, what
    rankings depend on; `translations`, the SHA-256 of the questions that are looked up instead; `reader`, the weights
    of a local model that reads passages; `pictures`, what is shown beside the words; `dspy`, its version where it
    writes the prompts.
    """
    program, draws = cell.program, cell.program.asking.sets_temperature
    # One's own questions are known by their content, whatever they are called.
    name = {"kind": cell.dataset.kind} if cell.dataset.kind else {"name": cell.dataset.called}
    changes: dict[str, Any] = {"explained": True} if cell.dataset.explained else {}
    if cell.dataset.alter:
        changes["alter"] = cell.dataset.alter.model_dump(include={"how", "seed"}, mode="json")
    facts: dict[str, Any] = {
        "dataset": {**name, "language": cell.dataset.language, "fingerprint": fingerprint, **changes},
        "program": describe(program),
        "reader_version": READER_VERSION,
    }
    if not program.asks_model:
        others["words"] = words
    else:
        facts |= {"model": dict(model or {}), "words": words, "prompts": prompts}
        others["request"] = _request(cell.model)
        others["models"] = {
            name: {**known, **_sampling(further, further.max_tokens, draws=draws), "request": _request(further)}
            for name, known in models.items()
            for further in [cell.models[name]]
        }
    facts |= {key: fact for key, fact in others.items() if fact}
    if (budget := program.budget(cell.model.max_tokens)) is not None:
        facts |= _sampling(cell.model, budget, draws=draws)
    return facts


def _request(model: ModelSpec) -> dict[str, Any]:
    return {name: value for name, value in model.request_settings.items() if name in _REQUEST}


def _sampling(model: ModelSpec, max_tokens: Any, *, draws: bool) -> dict[str, Any]:
    """Return how replies are written; `draws`: by a program that draws some, whatever the model's temperature."""
    seed = model.seed if model.temperature != 0 or draws else None
    drawing = {name: value for name in _DRAWING if (value := getattr(model, name)) not in (None, ())}
    return {"sampling": {"temperature": model.temperature, "max_tokens": max_tokens, "seed": seed, **drawing}}


def digest(facts: object, digits: int = 12) -> str:
    """Compute hexadecimal digits over the canonical JSON of `facts`; twelve are ample for the runs of one folder."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def differing_keys(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """List dotted keys at which two identities differ, in alphabetical order; `prompts` only if nothing else does."""
    values: list[dict[str, list[Any]]] = [{}, {}]
    for held, identity in zip(values, (first, second), strict=True):
        for path, value in walk(identity):
            # A list stands under its key; one of mappings, such as steps, is told by their places.
            if not isinstance(value, Mapping | list | tuple):
                held.setdefault(re.sub(r"(\.\d+)+$", "", path), []).append((path, value))
    keys = [key for key in sorted({*values[0], *values[1]}) if values[0].get(key) != values[1].get(key)]
    return keys if len(keys) < 2 else [key for key in keys if key != "prompts"]


def distinct_labels(labels: Sequence[str], cells: Sequence[CellSpec]) -> list[str]:
    """Return the labels of cells; behind those that are equal stands in which fields programs and sampling differ.

    Labels of cells that differ in neither stay equal: what else differs, such as the data set, is shown beside them.
    """
    included: dict[str, Any] = {"program": True, "model": {*SAMPLING, "extra_body"}}
    dumps = (cell.model_dump(mode="json", include=included) for cell in cells)
    documents = [{key: value for key, value in walk(dump) if not isinstance(value, dict | list)} for dump in dumps]
    names = []
    for label, document in zip(labels, documents, strict=True):
        others = [other for name, other in zip(labels, documents, strict=True) if name == label]
        keys = {key for other in others for key in {*document, *other} if document.get(key) != other.get(key)}
        values = {key: json.dumps(document.get(key), ensure_ascii=False).strip('"') for key in sorted(keys)}
        fields = ", ".join(f"{key.rpartition('.')[2]} {value[:40]}" for key, value in values.items())
        names.append(f"{label} ({fields})" if fields else label)
    return names
