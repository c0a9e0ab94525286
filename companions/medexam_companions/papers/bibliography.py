"""`medexam report --layout bibtex`: what a paper on stored runs cites, data sets, models and packages, as BibTeX.

The facts of publications stand in `references.yaml`. This makes none up: what has no known reference is a comment.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from medexam.experiments import Block, RunFolder, StoredRun, Unbroken, read_models
from medexam.model_identity import ModelIdentity
from medexam.specs import CATALOGUE, CellSpec, DatasetSpec

FILE = Path(__file__).parent / "published" / "references.yaml"
_ABOUT = frozenset({"type", "packages", "encoders", "cited_as"})
"""Keys of an entry that are no fields of BibTeX."""
_SPECIAL = re.compile(r"[&%$#_]")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB = "https://huggingface.co/"


Reference = tuple[str, str]
"""One entry: its key, and its text as BibTeX; twice the comment about what has no known reference."""


class Bibliography:
    """What runs used, as `medexam report` shows a layout: one entry for each, comments for what has no reference."""

    def __init__(self, runs: Sequence[StoredRun]) -> None:
        texts: dict[str, str] = {}
        versions: dict[str, dict[str, None]] = {}
        for folder in (run.folder for run in runs):
            texts |= _find_references(folder)
            for package, version in _used_packages(folder.read_record().cell, folder.read_environment()).items():
                versions.setdefault(package, {}).update({version: None} if version is not None else {})
        texts |= (_cite_package(package, list(used)) for package, used in versions.items())
        self._entries = {key: text for key, text in texts.items() if not text.startswith("%")}
        self._comments = [text for text in texts.values() if text.startswith("%")]
        if "mlflow" in versions:
            self._comments.append(
                "% MLflow was installed when the runs were asked: leave it out if none was sent to it"
            )

    def latex(self) -> str:
        """Render the file that BibTeX reads."""
        comments = ["\n".join(self._comments)] if self._comments else []
        return "\n\n".join([*self._entries.values(), *comments]) + "\n"

    def blocks(self) -> list[Block]:
        """Return what the terminal shows: the same."""
        return [Unbroken(self.latex())]

    def markdown(self) -> str:
        """Render the same as code."""
        return f"```bibtex\n{self.latex()}```\n"

    def document(self) -> dict[str, Any]:
        """Return what `--json` prints: the entries by their keys, and what has none."""
        return {"entries": self._entries, "comments": self._comments}


@cache
def read_references() -> dict[str, dict[str, Any]]:
    """Read what is known of publications: key of BibTeX -> fields."""
    references: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return references


def _find_references(folder: RunFolder) -> Iterator[Reference]:
    cell = folder.read_record().cell
    yield from _cite_data(cell.dataset)
    for file in sorted(folder.path.glob("models*.json")):
        yield from (_cite_model(model.identity, cell) for model in read_models(folder, file.name).values())
    retrieval = cell.program.asking.retrieval
    if retrieval is not None and not retrieval.retriever.is_own:
        retriever = retrieval.retriever
        names = [retriever.encoder_name] if retriever.uses_vectors else []
        yield from (_cite_encoder(str(name)) for name in [*names, retriever.rerank] if name is not None)


def _cite_data(spec: DatasetSpec) -> Iterator[Reference]:
    entry = CATALOGUE.get(spec.name)
    own_citation = spec.published.citation if spec.published is not None else ""
    citation = entry.citation if spec.kind is None and entry is not None else own_citation
    is_written = False
    for key, fields in read_references().items():
        if not fields.keys() & {"packages", "encoders"} and fields.get("cited_as", fields["title"]) in citation:
            is_written = True
            yield _reference(key, fields)
    if not is_written:
        where = f", {_HUB}datasets/{spec.hub.id}" if spec.hub is not None and _HUB_ID.fullmatch(spec.hub.id) else ""
        yield _comment(f"data set {spec.name}{where}" + (f": {citation}" if citation else ""))


def _cite_model(identity: ModelIdentity, cell: CellSpec) -> Reference:
    hub_id, commit = identity.hub_id, identity.commit
    # A name with a slash alone is no hub id: a provider's models and a server's folders have such names too.
    if (
        identity.engine == "embedded"
        and _COMMIT.fullmatch(identity.content or "")
        and cell.model.label == identity.name
    ):
        hub_id, commit = str(cell.model.name), identity.content
    if hub_id is not None and not _HUB_ID.fullmatch(hub_id):
        hub_id = None
    name = hub_id or identity.name
    fields = {"title": name} | ({"note": _escape(f"revision {commit}")} if commit is not None else {})
    key = _key(name if commit is None else f"{name}-{commit[:7]}")
    return _reference(key, {"type": "misc", **fields, **_hub_fields(hub_id)})


def _cite_encoder(name: str) -> Reference:
    for key, fields in read_references().items():
        if name in fields.get("encoders", ()):
            return _reference(key, fields)
    hub_id = "sentence-transformers/all-MiniLM-L6-v2" if name == "minilm" else name
    if not _HUB_ID.fullmatch(hub_id) or Path(name).exists():
        return _comment(f"encoder {name}")
    return _reference(_key(hub_id), {"type": "misc", "title": hub_id, **_hub_fields(hub_id)})


def _used_packages(cell: CellSpec, environment: Mapping[str, Any]) -> dict[str, str | None]:
    """Map each package that the run used to its version; None where the run did not keep it."""
    engine = environment.get("engine") or {}
    server = str(engine.get("server_version") or "")
    by_vllm = server.startswith("vllm") or "vLLM" in str((engine.get("details") or {}).get("by", ""))
    retrieval = cell.program.asking.retrieval
    spec = retrieval.retriever if retrieval is not None and not retrieval.retriever.is_own else None
    encodes = spec is not None and (spec.uses_vectors or spec.rerank is not None)
    used = {
        "medexam": True,
        "dspy": cell.program.asks_model,
        "litellm": engine.get("engine") in ("litellm", "vllm"),
        "vllm": by_vllm,
        "transformers": engine.get("engine") == "embedded",
        "datasets": cell.dataset.hub is not None or (spec is not None and spec.uses_vectors),
        "faiss": spec is not None and spec.uses_vectors,
        "sentence-transformers": encodes,
        # Whether a run was sent to MLflow stands in MLflow alone, so a comment says what to do with the entry.
        "mlflow": (environment.get("packages") or {}).get("mlflow") is not None,
    }
    versions = {"medexam": environment.get("medexam"), **(environment.get("packages") or {})}
    versions["vllm"] = server.removeprefix("vllm ") or None if by_vllm else None
    return {name: versions.get(name) for name, is_used in used.items() if is_used}


def _cite_package(package: str, versions: Sequence[str]) -> Reference:
    for key, fields in read_references().items():
        if package in fields.get("packages", ()):
            used = {"note": _escape(f"{package} {', '.join(versions)}")} if versions else {}
            return _reference(key, {**fields, **used})
    return _comment(f"package {package}")


def _reference(key: str, fields: Mapping[str, Any]) -> Reference:
    printed_fields = {name: value for name, value in fields.items() if name not in _ABOUT}
    if "author" not in printed_fields:
        # What styles sort by instead.
        printed_fields["key"] = key
    if "eprint" in printed_fields:
        printed_fields["archiveprefix"] = "arXiv"
    if "title" in printed_fields:
        # BibTeX writes small letters in titles otherwise, in names such as HEAD-QA too.
        printed_fields["title"] = f"{{{_escape(printed_fields['title'])}}}"
    lines = (f"  {name} = {{{value}}}," for name, value in printed_fields.items())
    return key, "\n".join([f"@{fields['type']}{{{key},", *lines, "}"])


def _comment(what: str) -> Reference:
    # A newline would end the comment, and an @ would open an entry.
    line = " ".join(f"% no known reference: {what}".replace("@", " at ").split())
    return line, line


def _hub_fields(hub_id: str | None) -> dict[str, str]:
    return {"url": f"{_HUB}{hub_id}"} if hub_id is not None else {}


def _key(name: str) -> str:
    return "model-" + re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-").lower()


def _escape(text: str) -> str:
    """Escape what TeX reads as its own in a name; braces and backslashes, which no name needs, are left out."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", re.sub(r"[{}\\]", "", text))
