"""Logs that keep prompts and replies as they went over the wire: OpenCompass, EvalScope and simple-evals.

The question and its options are those of the prompt. OpenCompass says what was predicted and not whether that is right;
the others say both.
"""

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medexam.inputs import first_line
from medexam.specs import Harness
from medexam_companions.harnesses.imports.document import last_question, lettered_options, read_option_texts, read_stem
from medexam_companions.harnesses.imports.samples import (
    MISSHAPEN,
    Choice,
    HarnessSample,
    Results,
    ResultsError,
    read_count,
    text_or_none,
)

Record = Mapping[str, Any]
_LABEL = "label: "
"""How OpenCompass calls what it keeps of one option."""
_FOLDERS = ("predictions", "results", "reviews")
"""Folders of OpenCompass and EvalScope that hold one for each model."""
_RESULT = re.compile(r"<p>(Correct Answer|Extracted Answer|Score): (.*?)</p>", re.DOTALL)


def is_opencompass(record: object) -> bool:
    """Return whether a value is what OpenCompass keeps of one question."""
    if not isinstance(record, Mapping):
        return False
    if "prediction" in record and ("origin_prompt" in record or any(name.startswith(_LABEL) for name in record)):
        return True
    return "prompt" in record and ("origin_prediction" in record or {"pred", "refr"} <= record.keys())


def find_opencompass(document: object) -> list[Record]:
    """Find what OpenCompass keeps of each question of a file; empty if it wrote none of it."""
    inner = document.get("details", document) if isinstance(document, Mapping) else document
    records = list(inner.values()) if isinstance(inner, Mapping) else inner if isinstance(inner, list) else []
    records = [record for record in records if not isinstance(record, str)]  # Its `type` stands beside the questions.
    return records if records and all(map(is_opencompass, records)) else []


def is_evalscope(record: object) -> bool:
    """Return whether the first line of a file is a prediction or a review of EvalScope."""
    if not isinstance(record, Mapping) or "index" not in record:
        return False
    return "sample_score" in record or "model_output" in record or {"choices", "raw_input"} <= record.keys()


def is_simple_evals(document: object) -> bool:
    """Return whether a JSON document is what simple-evals keeps of all samples."""
    return isinstance(document, Mapping) and isinstance(document.get("convos"), list)


def read_opencompass(path: Path, records: Sequence[Record]) -> list[Results]:
    """Read the predictions of one data set; raises `ResultsError` if one is of another shape."""
    return _collect(path, "opencompass", ((("prediction", _opencompass(record)),) for record in records))


def read_evalscope(path: Path, records: Iterable[Record]) -> list[Results]:
    """Read the reviews under each metric, or the predictions; raises `ResultsError` if one is of another shape."""
    reviews = list(records)
    models = {str(review["model"]) for review in reviews if review.get("model")}
    return _collect(path, "evalscope", map(_evalscope, reviews), models.pop() if len(models) == 1 else None)


def read_simple_evals(path: Path, document: Record) -> list[Results]:
    """Read the conversations, and what the report says of each; raises `ResultsError` if one is of another shape."""
    reports = document.get("htmls") or [""] * len(document["convos"])
    pairs = zip(document["convos"], reports, strict=len(reports) == len(document["convos"]))
    return _collect(path, "simple_evals", ((("score", _simple_evals(*pair)),) for pair in pairs))


def _collect(
    path: Path, harness: Harness, sample_groups: Iterable[Iterable[tuple[str, HarnessSample]]], model: str | None = None
) -> list[Results]:
    by_measure: dict[str, list[HarnessSample]] = {}
    try:
        for samples in sample_groups:
            for measure, sample in samples:
                by_measure.setdefault(measure, []).append(sample)
    except MISSHAPEN as error:
        number = 1 + max(map(len, by_measure.values()), default=0)
        raise ResultsError(f"{path}: record {number} is not in the format of {harness} ({first_line(error)})") from None
    if model is None and path.parent.parent.name in _FOLDERS:
        model = path.parent.name
    task = path.name.removesuffix(".gz").rpartition(".")[0]
    return [Results(harness, task, measure, samples, model=model) for measure, samples in by_measure.items()]


def _opencompass(record: Record) -> HarnessSample:
    labels = {name.removeprefix(_LABEL): value for name, value in record.items() if name.startswith(_LABEL)}
    prompt = record.get("origin_prompt", record.get("prompt"))
    stem = last_question(prompt if prompt is not None else next(iter(labels.values()))["prompt"])
    choice = next(record[name] for name in ("predictions", "prediction", "pred") if name in record)
    target = record.get("references", record.get("gold", record.get("refr")))
    right = record.get("correct", record.get("is_correct"))
    return HarnessSample(
        stem=stem,
        options=lettered_options(stem or ""),
        choice=_place(labels, choice) if labels else _choice(choice),
        target=_place(labels, target) if labels else _choice(target),
        right=right if isinstance(right, bool) else None,
        reply=None if labels else text_or_none(record.get("origin_prediction", record.get("prediction"))),
    )


def _evalscope(record: Record) -> Iterator[tuple[str, HarnessSample]]:
    raw = record.get("raw_input")
    prompt = last_question(record.get("input") or record.get("messages"))
    stem = prompt if prompt is not None else read_stem(raw or {})
    options = (read_option_texts(raw) if isinstance(raw, Mapping) else ()) or lettered_options(prompt or "")
    score = (record.get("sample_score") or {}).get("score") or {}
    choice = ((record.get("model_output") or record).get("choices") or [{}])[0]
    review = choice.get("review") or {}
    reply = text_or_none(score.get("prediction", (choice.get("message") or {}).get("content")))
    usage = (record.get("model_output") or record).get("usage") or {}
    sample = HarnessSample(
        stem=stem,
        options=options,
        choice=_choice(score.get("extracted_prediction", review.get("pred", reply))),
        target=_choice(record.get("target") or review.get("gold")),
        reply=reply,
        prompt_tokens=read_count(usage.get("input_tokens", usage.get("prompt_tokens"))),
        completion_tokens=read_count(usage.get("output_tokens", usage.get("completion_tokens"))),
    )
    values = score.get("value", review.get("result"))
    if not isinstance(values, Mapping):
        values = {} if values is None else {"acc": values}
    for name, value in values.items() or [("prediction", None)]:
        yield str(name), replace(sample, right=bool(value) if value in (0, 1) else None)


def _simple_evals(messages: Sequence[Record], report: str) -> HarnessSample:
    report_fields = {name: html.unescape(value) for name, value in _RESULT.findall(report)}
    stem = last_question(messages)
    reply = text_or_none(messages[-1]["content"]) if messages[-1]["role"] == "assistant" else None
    score = report_fields.get("Score", "")
    return HarnessSample(
        stem=stem,
        options=lettered_options(stem or ""),
        choice=report_fields.get("Extracted Answer", reply) or None,
        target=report_fields.get("Correct Answer"),
        right={"1": True, "1.0": True, "True": True, "0": False, "0.0": False, "False": False}.get(score),
        reply=reply,
    )


def _place(labels: Mapping[str, Any], value: Any) -> int | None:
    """Find the place of a label, a letter or a number, among those that were compared; None if it is none of them."""
    return list(labels).index(str(value)) if str(value) in labels else None


def _choice(value: Any) -> Choice | None:
    """Return one answer as it is written; None for several and for none."""
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip() else None
