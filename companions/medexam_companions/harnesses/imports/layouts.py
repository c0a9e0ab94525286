"""Opens the files of other harnesses, whose layouts stand in `layouts.yaml`: one record for each question and trial."""

import ast
import html
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from medexam.files import UnreadableError, first_line, open_parquet, parquet_rows, parse_json, read_json
from medexam.specs import parse_yaml
from medexam_companions.harnesses.imports.document import read_ids
from medexam_companions.harnesses.imports.layout import Layout, Opened
from medexam_companions.harnesses.imports.lm_eval import open_lm_eval
from medexam_companions.harnesses.imports.samples import (
    Record,
    find,
    read_beside,
    read_count,
    read_lines,
    read_number,
    text_or_none,
)

_LABEL = "label: "
"""How OpenCompass calls what it keeps of one option."""
_REPORT = re.compile(r"<p>(Correct Answer|Extracted Answer|Score): (.*?)</p>", re.DOTALL)
_HELM_MEASURE = re.compile(r"(?:.*_)?(?:exact_match|correctness|accuracy)")
"""Names of metrics that say right or wrong of a sample; HELM keeps dozens that count tokens and time beside them."""
_SHOWN = re.compile(r"<[\w.]+: ('[^']*'|\d+)>|\b(?:np|numpy)\.\w+\(([^()]*)\)|\b(?:nan|inf)\b")
"""What Python shows of values that are no literals."""
_ZSTANDARD = 93
"""The zip format's number of a compression of newer logs, which Python's `zipfile` does not know."""


def find_layout(document: object) -> Layout | None:
    """Find the layout of a JSON document, of a line or of a table's columns; None if it is of none."""
    records = [record for record in (document, *_entries(document)[:1]) if isinstance(record, Mapping)]
    names = [{str(name).partition(":")[0] for name in record} for record in records]
    entries = ((layout, set(fields.split())) for layout in layouts().values() for fields in layout["known_by"])
    return next((layout for layout, fields in entries if any(fields <= each for each in names)), None)


def _entries(document: Any) -> list[Any]:
    """List what a JSON document keeps of each question: a list, or an object with one for each number."""
    inner = document.get("details", document) if isinstance(document, Mapping) else document
    entries = list(inner.values()) if isinstance(inner, Mapping) else inner if isinstance(inner, list) else []
    return [entry for entry in entries if isinstance(entry, Mapping)]  # A `type` may stand beside the questions.


def _open_inspect(document: Any, path: Path) -> Opened:
    """Open a log: one document, or `.eval`, a zip with a JSON file a sample. Each scorer and epoch is one run."""
    header, samples = document, () if document is None else document.get("samples") or ()
    if document is None:
        # A log that was cut off has no header yet, and its journal says how it began.
        header = next(chain(_members(path, "header.json"), _members(path, "_journal/start.json")), {})
        samples = _members(path, "samples/")
    measures = {str(score.get("name")): score for score in find(header, "results.scores") or ()}
    task = str(header["eval"].get("task") or "").rpartition("/")[2]
    return _inspect(samples), {**header["eval"], "task": task, "plan": header.get("plan")}, measures


def _inspect(samples: Iterable[Record]) -> Iterator[Record]:
    for sample in samples:
        epoch, scores = read_count(sample.get("epoch") or 1), sample.get("scores") or {}
        shared = {"ids": (str(sample["id"]),), "sample": sample, "trial": epoch or 1}
        if epoch is None or not scores:
            yield {**shared, "failed": True}
            continue
        for name, score in scores.items():
            yield {**shared, "choice": text_or_none(score.get("answer")), "verdicts": {name: score.get("value")}}


def _members(path: Path, opening: str) -> Iterator[Record]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.filename.startswith(opening):
                yield _unpack(archive, member)


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    if member.compress_type != _ZSTANDARD:
        try:
            return parse_json(archive.read(member))
        except zlib.error as error:
            raise UnreadableError(first_line(error)) from None
    packed = copy(member)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, member.compress_size
    del packed.CRC  # of the unpacked bytes
    with archive.open(packed) as stream, pa.CompressedInputStream(pa.PythonFile(stream, "r"), "zstd") as unpacked:
        content: bytes = unpacked.read(member.file_size + 1)
    if zlib.crc32(content) != member.CRC:
        raise UnreadableError(f"{member.filename} does not fit the checksum in the zip file")
    return parse_json(content)


def _open_every_eval_ever(_: Any, path: Path) -> Opened:
    """Open `UUID_samples.jsonl`, a line for each sample and result; `UUID.json` beside it says what was run.

    The schemas are `instance_level_eval.schema.json` and `eval.schema.json`, versions 0.2.2 to 0.3.0.
    """
    about = read_beside(path, re.sub(r"(_samples)?\.jsonl(\.gz)?$", ".json", path.name))
    measures = {_result_id(result): result for result in find(about, "evaluation_results") or ()}
    return map(_every_eval_ever, read_lines(path)), about, measures


def _result_id(record: Record) -> str:
    return str(record.get("evaluation_result_id") or record["evaluation_name"])


def _every_eval_ever(record: Record) -> Record:
    evaluation, references = record["evaluation"], find(record, "input.reference") or ()
    answers = [each["extracted_value"] for each in record["answer_attribution"] if each.get("is_terminal")]
    latency = read_number(find(record, "performance.latency_ms"))
    # A number may count the options from 0 or from 1, and the schema does not say which.
    is_unclear = any(text.isdecimal() for text in references) and find(record, "input.choices")
    return {
        **record,
        "ids": (str(record["sample_id"]),),
        "choice": answers[-1] if answers else find(record, "output.raw.0"),
        "target": None if is_unclear else references,
        "latency_s": None if latency is None else latency / 1000,
        "failed": bool(record.get("error")),
        "verdicts": {_result_id(record): evaluation["is_correct"] if evaluation["score"] in (0, 1) else None},
    }


def _lighteval(path: Path) -> Iterator[Record]:
    with open_parquet(path) as file:
        for row in parquet_rows(file):
            yield {name: _parse(row[name]) for name in ("doc", "model_response", "metric")}


def _parse(value: Any) -> Any:
    """Parse an object that lighteval has written as Python shows it, as it does where rows do not fit one another."""
    if not isinstance(value, str):
        return value
    return ast.literal_eval(_SHOWN.sub(lambda match: match[1] or match[2] or "1e999", value))


def _opencompass(record: Record) -> Record:
    labels = {name.removeprefix(_LABEL): value for name, value in record.items() if name.startswith(_LABEL)}
    if not labels:
        return record
    # What was compared are the labels, letters or numbers; a place is that among them.
    places = {name: place for place, name in enumerate(labels)}
    answers = {name: places.get(str(record.get(name))) for name in ("prediction", "gold")}
    return {"origin_prompt": next(iter(labels.values()))["prompt"], **record, **answers}


def _open_simple_evals(document: Any, _: Path) -> Opened:
    reports = document.get("htmls") or [""] * len(document["convos"])
    pairs = zip(document["convos"], reports, strict=len(reports) == len(document["convos"]))
    return (_simple_evals(*pair) for pair in pairs), {}, {}


def _simple_evals(messages: list[Record], report: str) -> Record:
    fields = {name: html.unescape(value).strip() or None for name, value in _REPORT.findall(report)}
    return {
        "prompt": messages,
        "reply": messages[-1]["content"] if messages[-1]["role"] == "assistant" else None,
        "extracted": fields.get("Extracted Answer"),
        "target": fields.get("Correct Answer"),
        "verdicts": {"score": fields["Score"]} if "Score" in fields else None,
    }


def _open_helm(document: Any, path: Path) -> Opened:
    stats = _unperturbed(read_beside(path, "stats.json") or (), "name")
    names = [each["name"]["name"] for each in stats]  # Several of a name are those of its splits.
    measures = {
        name: {"stated": each.get("mean")} for name, each in zip(names, stats, strict=True) if names.count(name) == 1
    }
    task = re.sub(r"(^|[:,])model(_deployment)?=[^,]*", "", path.resolve().parent.name)
    records = _helm(document, read_json(path.with_name("per_instance_stats.json")))
    return records, {**document["adapter_spec"], "task": task}, measures


def _helm(document: Any, stats: Any) -> Iterator[Record]:
    """Yield a record for each question and trial, without the copies that HELM perturbed, as in its own accuracy."""
    values_by_place: dict[tuple[str, int], dict[str, float]] = {}
    for entry in _unperturbed(stats):
        values = {each["name"]["name"]: each["mean"] for each in entry["stats"] if each.get("mean") is not None}
        values_by_place.setdefault((entry["instance_id"], entry["train_trial_index"]), {}).update(values)
    places = set[tuple[str, int]]()
    for request in _unperturbed(document["request_states"], "instance"):
        instance, result = request["instance"], request.get("result") or {}
        place = (instance["id"], request["train_trial_index"])
        # Options that are asked one by one have a request each, and some a second one that calibrates.
        if place in places:
            continue
        places.add(place)
        values = values_by_place.get(place, {})
        verdicts = {name: value for name, value in values.items() if _HELM_MEASURE.fullmatch(name)}
        references = instance["references"]
        right = [number for number, reference in enumerate(references) if "correct" in reference["tags"]]
        reply = find(result, "completions.0.text")
        choice, labels = read_count(values.get("predicted_index")), list(request.get("output_mapping") or ())
        if choice is not None:
            reply = None
            # Of options that score alike, HELM counts the share that is right.
            verdicts = {name: value if value in (0, 1) else choice in right for name, value in verdicts.items()}
        else:
            pattern = document["adapter_spec"].get("output_mapping_pattern") or "(?s)(.*)"
            match = re.search(pattern, (text_or_none(reply) or "").strip())
            label = match and match[1 if match.re.groups else 0]
            choice = labels.index(label) if label in labels else None
        yield {
            "ids": (str(instance["id"]), *read_ids(instance.get("extra_data") or {})),
            "prompt": instance["input"].get("text"),
            "options": [reference["output"]["text"] for reference in references],
            "choice": choice,
            "target": right,
            "reply": reply,
            "latency_s": result.get("request_time"),
            "trial": place[1] + 1,
            "failed": result.get("success") is not True or not verdicts,
            "verdicts": verdicts,
            "stats": values,
        }


def _unperturbed(entries: Iterable[Record], *names: str) -> list[Record]:
    """Leave out what is said of questions that HELM perturbed, in the part of an entry at `names`."""
    return [entry for entry in entries if not find(entry, ".".join((*names, "perturbation")))]


_OPENERS: Mapping[str, Callable[[Any, Path], Opened]] = {
    "lm_eval": open_lm_eval,
    "inspect": _open_inspect,
    "every_eval_ever": _open_every_eval_ever,
    "helm": _open_helm,
    "lighteval": lambda _, path: (_lighteval(path), {}, {}),
    "opencompass": lambda document, path: (map(_opencompass, _entries(document or list(read_lines(path)))), {}, {}),
    "evalscope": lambda _, path: (read_lines(path), next(read_lines(path), {}), {}),
    "simple_evals": _open_simple_evals,
}


@cache
def layouts() -> Mapping[str, Layout]:
    """Return every layout by its harness; a file is of the first by whose names it is known."""
    path = Path(__file__).with_name("layouts.yaml")
    table = parse_yaml(path.read_text(encoding="utf-8"), str(path))
    defaults = table.pop("defaults")
    return {name: {**defaults, **entry, "harness": name, "open": _OPENERS[name]} for name, entry in table.items()}
