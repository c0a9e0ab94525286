"""How a run's numbers came about, in one line for each thing that can change them.

Two numbers of one model that differ are explained by the lines that differ. Everything is read from the run folder. Of
an imported run it is what the harness's files tell.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medexam.experiments.store.run_folder import RunRecord

NOT_TOLD = "not told"
NONE = "none"
_DIGITS = 12
Protocol = Mapping[str, str]
"""What can change a number -> how it was; `NOT_TOLD` if the files do not say."""
UNANSWERED = "wrong in accuracy; no point lost in exam score and points"


def read_protocol(record: RunRecord, environment: Mapping[str, Any]) -> Protocol:
    """Read the protocol of a run, in the same order for every run."""
    import_record = environment.get("imported")
    fields = _imported(record, import_record) if import_record else _asked(record, environment)
    dataset = record.cell.dataset
    data_line = (
        f"{dataset.called} {record.dataset_version} {dataset.language}, texts {_short(record.dataset_fingerprint)}"
    )
    keys = hashlib.sha256("\n".join(sorted(record.questions)).encode()).hexdigest()
    return {
        **{name: fields.get(name) or NOT_TOLD for name in _FIELDS},
        "data": data_line,
        "answer key": NOT_TOLD if record.dataset_golds is None else _short(record.dataset_golds),
        "questions": f"{len(record.questions):,}, digest {_short(keys)}",
    }


_FIELDS = (
    *("harness", "model", "program", "prompt", "demonstrations", "passages", "answer", "normalisation", "unanswered"),
    *("decoding", "their data"),
)


def digest_of(value: object) -> str:
    """Compute a short digest of anything JSON-ready, by which two values are known to be equal."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _short(digest: str) -> str:
    return digest[:_DIGITS]


def _asked(record: RunRecord, environment: Mapping[str, Any]) -> dict[str, str]:
    """Describe the protocol of a run that medexam has asked."""
    identity, program = record.identity, record.cell.program
    words, engine = identity.get("words") or {}, environment.get("engine") or {}
    commit = str(environment.get("git_commit") or "")
    program_identity = identity.get("program") or {}
    examples = _examples(words)
    return {
        "harness": f"medexam {environment.get('medexam') or NOT_TOLD}"
        + (f", commit {commit[:_DIGITS]}" if commit else ""),
        "model": _model(record, engine) if program.asks_model else NONE,
        "program": f"{program.label}, reader version {identity['reader_version']}",
        "prompt": f"{getattr(program, 'prompt', '')} {digest_of(words)}".strip() if words else NONE,
        "demonstrations": f"{len(examples)}, digest {digest_of(examples)}" if examples else NONE,
        "passages": _passages(identity),
        "answer": _reading(record, engine),
        "normalisation": str(program_identity.get("norm") or "spacing, case, quotes and brackets of the answer format")
        if program.asks_model
        else NONE,
        "unanswered": UNANSWERED,
        "decoding": _pairs(_sampling(identity, engine), identity.get("request")) if program.asks_model else NONE,
        "their data": "the data below",
    }


def _sampling(identity: Mapping[str, Any], engine: Mapping[str, Any]) -> dict[str, Any]:
    """Describe how replies were drawn; the seed is none where the provider takes none."""
    sampling = dict(identity.get("sampling") or {})
    capabilities = (engine.get("details") or {}).get("capabilities") or {}
    if sampling.get("seed") is not None and capabilities.get("seeds") is False:
        sampling["seed"] = "none, not seeded"
    return sampling


def _examples(words: Mapping[str, Any]) -> list[Any]:
    """List the solved questions of a prompt, which identities keep as a list or as its JSON."""
    examples = words.get("examples") or []
    return list(examples) if isinstance(examples, (list, tuple)) else [examples]


def _model(record: RunRecord, engine: Mapping[str, Any]) -> str:
    model = record.identity.get("model") or {}
    details = {name: engine.get(name) or model.get(name) for name in ("revision", "weights", "dtype")}
    name = str(engine.get("model") or model.get("name") or record.cell.model.label).rsplit("/", 1)[-1]
    server = engine.get("server_version") or engine.get("engine") or model.get("engine")
    model_parts = [f"{key} {str(value)[:_DIGITS]}" for key, value in details.items() if value]
    template = engine.get("chat_template")
    return ", ".join(
        [
            name,
            *model_parts,
            *([f"by {server}"] if server else []),
            *([f"template {_short(str(template))}"] if template else []),
        ]
    )


def _passages(identity: Mapping[str, Any]) -> str:
    retriever = identity.get("retriever")
    if not retriever:
        return NONE
    program_identity = identity.get("program") or {}
    return f"{program_identity.get('k', '?')} by {retriever.get('kind')}, digest {digest_of(retriever)}"


def _reading(record: RunRecord, engine: Mapping[str, Any]) -> str:
    """Describe how an answer was taken from what the model said."""
    program = record.identity.get("program") or {}
    parts = [
        f"{name.replace('_', ' ')}: {program[name]}"
        for name in ("answer_format", "answer_form", "read")
        if name in program
    ]
    parts += [f"{name}: {program[name]}" for name in ("samples", "orders", "abstain_below") if program.get(name)]
    if program.get("answer_format") == "guided" and engine.get("guided_by"):
        parts.append(f"guided by: {engine['guided_by']}")
    return ", ".join(parts) or f"the program {record.cell.program.label} chooses"


def _imported(record: RunRecord, import_record: Mapping[str, Any]) -> dict[str, str]:
    """Describe the protocol of a run that was imported, `import_record` being what was kept of its file."""
    protocol: dict[str, str] = dict(import_record.get("protocol") or {})
    program = record.identity["program"]
    return {
        "harness": str(program["harness"]),
        "model": str(program["answered_by"] or NOT_TOLD),
        "program": f"{program['task']}, file {Path(import_record['file']).name}, SHA-256 {_short(program['sha256'])}",
        "answer": str(program["measure"]),
        "unanswered": UNANSWERED,
        **protocol,
    }


def _pairs(*values: Mapping[str, Any] | None) -> str:
    pairs = [f"{name} {value}" for mapping in values for name, value in (mapping or {}).items() if value is not None]
    return ", ".join(pairs) or NONE
