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
_FIELDS = (
    *("harness", "model", "program", "prompt", "demonstrations", "passages", "answer", "normalisation", "unanswered"),
    *("decoding", "their data"),
)


def read_protocol(record: RunRecord, environment: Mapping[str, Any]) -> Protocol:
    """Read the protocol of a run, in the same order for every run."""
    import_record, dataset = environment.get("imported"), record.cell.dataset
    fields = _imported(record, import_record) if import_record else _asked(record, environment)
    keys = hashlib.sha256("\n".join(sorted(record.questions)).encode()).hexdigest()
    texts = f"texts {record.dataset_fingerprint[:_DIGITS]}"
    return {
        **{name: fields.get(name) or NOT_TOLD for name in _FIELDS},
        "unanswered": fields.get("unanswered") or "wrong in accuracy; no point lost in exam score and points",
        "data": f"{dataset.called} {record.dataset_version} {dataset.language}, {texts}",
        "answer key": NOT_TOLD if record.dataset_golds is None else record.dataset_golds[:_DIGITS],
        "questions": f"{len(record.questions):,}, digest {keys[:_DIGITS]}",
    }


def digest_of(value: object) -> str:
    """Compute a short digest of anything JSON-ready, by which two values are known to be equal."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _asked(record: RunRecord, environment: Mapping[str, Any]) -> dict[str, str]:
    """Describe the protocol of a run that medexam has asked."""
    identity, program = record.identity, record.cell.program
    words, engine = identity.get("words") or {}, environment.get("engine") or {}
    answering, retriever = program.flow and program.flow.answering, identity.get("retriever")
    parts = program.model_dump(mode="json") | ({} if answering is None else answering.model_dump(mode="json"))
    step = program.flow and program.flow.look_up
    count = step.k if step else parts.get("k", "?")
    harness = f"medexam {environment.get('medexam') or NOT_TOLD}"
    commit = str(environment.get("git_commit") or "")[:_DIGITS]
    # Identities keep the solved questions of a prompt as a list or as its JSON.
    asked_words = [words, *words.get("parts", {}).values()]
    stated: Any = next((asked["examples"] for asked in asked_words if asked.get("examples")), [])
    examples = list(stated) if isinstance(stated, (list, tuple)) else [stated]
    answer = [
        f"{name.replace('_', ' ')}: {parts[name]}" for name in ("answer_format", "answer_form", "read") if name in parts
    ]
    answer += [
        f"{name}: {parts[name]}"
        for name in ("samples", "orders", "abstain_below")
        if parts.get(name) not in (None, 1, "given")
    ]
    if parts.get("answer_format") == "guided" and engine.get("guided_by"):
        answer.append(f"guided by: {engine['guided_by']}")
    sampling = dict(identity.get("sampling") or {})
    capabilities = (engine.get("details") or {}).get("capabilities") or {}
    if sampling.get("seed") is not None and capabilities.get("seeds") is False:
        sampling["seed"] = "none, not seeded"
    decoding = [*sampling.items(), *(identity.get("request") or {}).items()]
    asked = {
        "model": _model(record, engine),
        "normalisation": str(parts.get("norm") or "spacing, case, quotes and brackets of the answer format"),
        "decoding": ", ".join(f"{name} {value}" for name, value in decoding if value is not None) or NONE,
    }
    return {
        "harness": f"{harness}, commit {commit}" if commit else harness,
        "program": f"{program.label}, reader version {identity['reader_version']}",
        "prompt": f"{getattr(program, 'prompt', '')} {digest_of(words)}".strip() if words else NONE,
        "demonstrations": f"{len(examples)}, digest {digest_of(examples)}" if examples else NONE,
        "passages": f"{count} by {retriever.get('kind')}, digest {digest_of(retriever)}" if retriever else NONE,
        "answer": ", ".join(answer) or f"the program {program.label} chooses",
        "their data": "the data below",
        **(asked if program.asks_model else dict.fromkeys(asked, NONE)),
    }


def _model(record: RunRecord, engine: Mapping[str, Any]) -> str:
    model = record.identity.get("model") or {}
    name = str(engine.get("model") or model.get("name") or record.cell.model.label).rsplit("/", 1)[-1]
    traits = {trait: engine.get(trait) or model.get(trait) for trait in ("revision", "weights", "dtype")}
    parts = [name, *(f"{trait} {str(value)[:_DIGITS]}" for trait, value in traits.items() if value)]
    if server := engine.get("server_version") or engine.get("engine") or model.get("engine"):
        parts.append(f"by {server}")
    if template := engine.get("chat_template"):
        parts.append(f"template {str(template)[:_DIGITS]}")
    return ", ".join(parts)


def _imported(record: RunRecord, import_record: Mapping[str, Any]) -> dict[str, str]:
    """Describe the protocol of a run that was imported, `import_record` being what was kept of its file."""
    program = record.identity["program"]
    file = f"file {Path(import_record['file']).name}, SHA-256 {program['sha256'][:_DIGITS]}"
    return {
        "harness": str(program["harness"]),
        "model": str(program.get("answered_by") or NOT_TOLD),
        "program": f"{program['task']}, {file}",
        "answer": str(program["measure"]),
        **(import_record.get("protocol") or {}),
    }
