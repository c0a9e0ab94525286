"""The identity of a run: a digest over everything that an answer depends on, and over nothing else.

Which questions were selected is left out, so that widening the years or dropping the limit asks only the new
questions; so is where a server listens, and what a file is called. A control asks no model, so the model is left out of
its digest; where nothing is sampled, so is the sampling.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from medexam.specs.experiment import CellSpec
from medexam.specs.model import ModelSpec

DIGEST_LENGTH = 12
"""Hexadecimal digits of a digest: 48 bits, ample for the runs of one folder."""
IDENTITY_SCHEMA = 4
"""Raised when an identity covers other things than before; runs of another schema are not continued."""
READER_VERSION = 3
"""Raised where code reads a reply, a score or a control otherwise than before: the same replies mean other answers."""


_LABEL_CHARS = 40
"""Characters of a field's value that a label shows."""
_DRAWING = ("top_p", "top_k", "min_p", "stop")
_REQUEST = ("reasoning_effort", "thinking", "extra_body")


def build_identity(
    cell: CellSpec,
    *,
    fingerprint: str,
    words: Mapping[str, Any],
    retriever: Mapping[str, Any] | None = None,
    translations: str | None = None,
    reader: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    models: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    pictures: Mapping[str, Any] | None = None,
    prompts: Sequence[str | None] | None = None,
    dspy: str | None = None,
) -> dict[str, Any]:
    """Describe what an answer of this cell depends on, as JSON-ready data in one form however the spec is written.

    `fingerprint` is the SHA-256 of the data set's content, since several sets may be read in one form; `words` is
    the text of the prompts and examples, so that an edited prompt file is another program; `retriever` is what
    rankings depend on, None for a program that looks nothing up; `translations` is the fingerprint of the questions
    that are looked up instead of those that are asked, None where those are; `reader` is the weights of a local
    model that reads passages, None for a program without one; `model` is what `known_model` knows of the model that
    is asked, and `models` the same of further models, by name; `pictures` is what is shown beside the words, None
    where nothing is; `prompts` is a hash of what is sent for each invented question, None where the user's code shows
    none; `dspy` is its version where it writes the prompts.
    """
    program = cell.program
    # One's own questions are known by their content, whatever they are called.
    name = {"kind": cell.dataset.kind} if cell.dataset.kind else {"name": cell.dataset.called}
    dataset = {**name, "language": cell.dataset.language, "fingerprint": fingerprint}
    facts: dict[str, Any] = {
        "dataset": dataset | cell.dataset.form,
        "program": program.facts(cell.dataset.language),
        "reader_version": READER_VERSION,
    }
    if retriever:
        facts["retriever"] = dict(retriever)
    if translations:
        facts["translations"] = translations
    if reader:
        facts["reader"] = dict(reader)
    if pictures:
        facts["pictures"] = dict(pictures)
    if program.asks_model:
        facts["model"] = dict(model or {})
        if models:
            draws = program.asking.sets_temperature
            facts["models"] = {name: _further(cell.models[name], entry, draws=draws) for name, entry in models.items()}
        facts |= {"words": dict(words), "prompts": prompts and list(prompts)}
        if dspy:
            facts["dspy"] = dspy
        if request := _request(cell.model):
            facts["request"] = request
    if (budget := program.budget(cell.model.max_tokens)) is not None:
        facts["sampling"] = _sampling(cell.model, budget, draws=program.asking.sets_temperature)
    return facts


def _further(model: ModelSpec, facts: Mapping[str, Any], *, draws: bool) -> dict[str, Any]:
    """Return what an answer depends on of a further model; the tokens of its replies stand with the program's."""
    sampling = _sampling(model, 0, draws=draws) | {"max_tokens": model.max_tokens}
    return {**facts, "sampling": sampling, "request": _request(model)}


def _request(model: ModelSpec) -> dict[str, Any]:
    return {name: model.request_settings[name] for name in _REQUEST if name in model.request_settings}


def _sampling(model: ModelSpec, budget: int | dict[str, int], *, draws: bool) -> dict[str, Any]:
    """Return how replies are written; `draws`: a program that draws some, whatever the model's temperature."""
    return {
        "temperature": model.temperature,
        "max_tokens": budget,
        "seed": model.seed if model.temperature != 0 or draws else None,
        **{name: value for name in _DRAWING if (value := getattr(model, name)) not in (None, ())},
    }


def digest(facts: Mapping[str, Any]) -> str:
    """Compute `DIGEST_LENGTH` hexadecimal digits over the canonical JSON of `facts`."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:DIGEST_LENGTH]


def differing_keys(first: Mapping[str, Any], second: Mapping[str, Any], prefix: str = "") -> list[str]:
    """List dotted keys at which two identities differ, in alphabetical order; `prompts` only if nothing else does."""
    keys: list[str] = []
    for key in sorted({*first, *second}):
        a, b = (_by_place(identity.get(key)) for identity in (first, second))
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            keys += differing_keys(a, b, f"{prefix}{key}.")
        elif a != b:
            keys.append(f"{prefix}{key}")
    return keys if prefix or len(keys) < 2 else [key for key in keys if key != "prompts"]


def _by_place(value: Any) -> Any:
    """Return a list of mappings, such as steps, as a mapping of their places."""
    is_list = isinstance(value, list | tuple) and all(isinstance(entry, Mapping) for entry in value)
    return {str(place): entry for place, entry in enumerate(value)} if is_list else value


def distinct_labels(labels: Sequence[str], cells: Sequence[CellSpec]) -> list[str]:
    """Return the labels of cells; behind those that are equal stands in which fields programs and sampling differ.

    Labels of cells that differ in neither stay equal: what else differs, such as the data set, is shown beside them.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    included: dict[str, Any] = {"program": True, "model": {"temperature", "max_tokens", "seed", *_DRAWING, *_REQUEST}}
    documents = [cell.model_dump(mode="json", include=included) for cell in cells]
    for label, document in zip(labels, documents, strict=True):
        groups.setdefault(label, []).append(document)
    names = []
    for label, document in zip(labels, documents, strict=True):
        first, *others = groups[label]
        keys = sorted({key for other in others for key in differing_keys(first, other)})
        fields = [f"{key.rpartition('.')[2]} {_value(document, key)}" for key in keys]
        names.append(f"{label} ({', '.join(fields)})" if fields else label)
    return names


def _value(document: Any, key: str) -> str:
    for part in key.split("."):
        document = document.get(part) if isinstance(document, Mapping) else None
    return (document if isinstance(document, str) else json.dumps(document, ensure_ascii=False))[:_LABEL_CHARS]
