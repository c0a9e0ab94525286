"""How a run's numbers came about, in one line for each thing that can change them, and where those of several differ.

Everything is read from the run folder. Of an imported run it is what the harness's files tell.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.experiments.compare.result import ComparisonScope, ComparisonSection
from medexam.experiments.store.run_folder import RunRecord
from medexam.specs.identity import digest
from medexam.tables import Table

NOT_TOLD = "not told"
NONE = "none"
_DIGITS = 12
Protocol = Mapping[str, str]
"""What can change a number -> how it was; `NOT_TOLD` if the files do not say."""
_FIELDS = (
    *("harness", "model", "program", "prompt", "demonstrations", "passages", "answer", "normalisation", "unanswered"),
    *("decoding", "their data"),
)
_TRAITS = ("revision", "weights", "dtype")


def read_protocol(record: RunRecord, environment: Mapping[str, Any]) -> Protocol:
    """Read the protocol of a run, in the same order for every run."""
    account, dataset = environment.get("imported"), record.cell.dataset
    fields = _imported(record, account) if account else _asked(record, environment)
    fields["unanswered"] = fields.get("unanswered") or "wrong in accuracy; no point lost in exam score and points"
    keys = hashlib.sha256("\n".join(sorted(record.questions)).encode()).hexdigest()
    texts = f"texts {record.dataset_fingerprint[:_DIGITS]}"
    return {
        **{name: fields.get(name) or NOT_TOLD for name in _FIELDS},
        "data": f"{dataset.called} {record.dataset_version} {dataset.language}, {texts}",
        "answer key": record.dataset_golds[:_DIGITS],
        "questions": f"{len(record.questions):,}, digest {keys[:_DIGITS]}",
    }


def _asked(record: RunRecord, environment: Mapping[str, Any]) -> dict[str, str]:
    identity, program, model = record.identity, record.cell.program, record.identity.get("model") or {}
    words, engine, retriever = identity.get("words") or {}, environment.get("engine") or {}, identity.get("retriever")
    parts = program.model_dump(mode="json")
    if answering := program.asking.words:
        parts |= answering.model_dump(mode="json")
    # Identities keep the solved questions of a prompt as a list or as its JSON.
    asked_words = [words, *words.get("parts", {}).values()]
    examples: Any = next((each["examples"] for each in asked_words if each.get("examples")), [])
    count = f"{len(examples)}, " if isinstance(examples, (list, tuple)) else ""
    fields = {
        "harness": f"medexam {environment.get('medexam')}, commit {str(environment.get('git_commit'))[:_DIGITS]}",
        "program": f"{program.label}, reader version {identity['reader_version']}",
        "prompt": f"{getattr(program, 'prompt', '')} {digest(words)}".strip() if words else NONE,
        "demonstrations": f"{count}digest {digest(examples)}" if examples else NONE,
        "passages": f"{retriever.get('kind')}, digest {digest(retriever)}" if retriever else NONE,
        "answer": _join(
            (name, parts.get(name)) for name in ("answer_format", "answer_form", "read", "orders", "samples")
        )
        or f"the program {program.label} chooses",
        "their data": "the data below",
    }
    if not program.asks_model:
        return fields | dict.fromkeys(("model", "normalisation", "decoding"), NONE)
    traits = [(name, str(engine.get(name) or model.get(name) or "")[:_DIGITS]) for name in _TRAITS]
    name = str(engine.get("model") or model.get("name") or record.cell.model.label).rpartition("/")[2]
    server = engine.get("server_version") or engine.get("engine") or model.get("engine")
    template = str(engine.get("chat_template") or "")[:_DIGITS]
    return fields | {
        "model": _join([("", name), *traits, ("by", server), ("template", template)]),
        "normalisation": str(parts.get("norm") or "spacing, case, quotes and brackets of the answer format"),
        "decoding": _join(((identity.get("sampling") or {}) | (identity.get("request") or {})).items()) or NONE,
    }


def _join(settings: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} {value}".strip() for name, value in settings if value not in (None, ""))


def _imported(record: RunRecord, account: Mapping[str, Any]) -> dict[str, str]:
    program = record.identity["program"]
    file = f"file {Path(account['file']).name}, SHA-256 {program['sha256'][:_DIGITS]}"
    return {
        "harness": str(program["harness"]),
        "model": str(program.get("answered_by") or NOT_TOLD),
        "program": f"{program['task']}, {file}",
        "answer": str(program["measure"]),
        **(account.get("protocol") or {}),
    }


def find_protocols(compared: ComparisonScope) -> ComparisonSection:
    """Say what at least two runs state differently, what some run does not state, and what is the same in all."""
    protocols = [read_protocol(folder.read_record(), folder.read_environment()) for folder in compared.folders]
    stated = {setting: {protocol[setting] for protocol in protocols} for setting in protocols[0]}
    differing = [setting for setting, texts in stated.items() if len(texts - {NOT_TOLD}) > 1]
    untold = [setting for setting, texts in stated.items() if NOT_TOLD in texts]
    same = [setting for setting in stated if setting not in {*differing, *untold}]
    remarks = [] if differing or untold else ["The runs' protocols do not differ."]
    if differing:
        remarks.append(f"The runs differ in {', '.join(differing)}: any of these may explain a difference.")
    if untold:
        remarks.append(f"Not stated by every run: {', '.join(untold)}.")
    if same:
        remarks.append(f"The same in all runs: {', '.join(same)}.")
    shown = [{name: text for name, text in each.items() if name not in same} for each in protocols]
    table = protocol_table("Where the protocols differ", compared.names, shown)
    runs = {key: dict(protocol) for key, protocol in zip(compared.run_keys, protocols, strict=True)}
    document = {"runs": runs, "differing": differing, "not_told": untold}
    return ComparisonSection("protocol", remarks, document, [table] if len(same) < len(stated) else [])


def protocol_table(title: str, names: Sequence[str], protocols: Sequence[Protocol]) -> Table:
    """Show protocols side by side, a row a thing that can change a number."""
    rows = tuple((setting, *(each[setting] for each in protocols)) for setting in protocols[0])
    caption = "Equal digests are equal texts. An imported run shows what its harness's files state."
    return Table(title, ("What", *names), rows, text_columns=1 + len(names), caption=caption)
