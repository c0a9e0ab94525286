"""lm-evaluation-harness: the `samples_TASK_DATE.jsonl` of `--log_samples`, with the `results_DATE.json` beside it.

Until 0.4.2 the samples of a task are one JSON list in `MODEL_TASK.jsonl`, with `results.json` beside it, and name no
filter.

Of a multiple-choice task each measure chooses for itself: `acc` takes the most likely option, `acc_norm` the most
likely by character and `acc_bytes` by byte, of equals the first, as the harness's `process_results` does. Of a task
that generates, each filter reads the replies in its own way.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from medexam.inputs import UnreadableError, first_line, read_json
from medexam_companions.harnesses.imports.document import read_ids, read_option_texts, read_stem
from medexam_companions.harnesses.imports.lines import read_lines
from medexam_companions.harnesses.imports.samples import MISSHAPEN, Choice, HarnessSample, Results, ResultsError
from medexam_companions.harnesses.imports.told import of_lm_eval

Record = Mapping[str, Any]
_NAME = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(\.gz)?")
NORMS: Mapping[str, tuple[str, str, Callable[[str], int]]] = {
    "acc": ("nats", "sum", lambda _: 1),
    "acc_norm": ("nats per character", "character", len),
    "acc_bytes": ("nats per byte", "byte", lambda text: len(text.encode())),
}
"""Measure of a multiple-choice task -> unit and norm of its scores, and what each is divided by."""
_OWN = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
}
"""Fields of a sample that are no measure."""
NO_FILTER = "none"
REPLIES = "replies"
"""The measure of a run that is made of replies, where no measure says right or wrong."""


def is_lm_eval(record: object) -> bool:
    """Return whether the first line of a file is a sample of lm-evaluation-harness."""
    return isinstance(record, Mapping) and {"doc_id", "doc", "resps"} <= record.keys()


def read_lm_eval(path: Path) -> list[Results]:
    """Read the samples of each filter under each measure; raises `ResultsError` if a line is no sample."""
    task, report = _read_results(path)
    delimiter = str((report.get("configs") or {}).get(task, {}).get("target_delimiter", " "))
    samples_by_measure: dict[tuple[str, str], list[HarnessSample]] = {}
    unclear: set[tuple[str, str]] = set()
    generated: dict[str, list[HarnessSample]] = {}
    doc_counts: Counter[str] = Counter()
    for number, record in enumerate(read_lines(path), start=1):
        doc_counts[str(record.get("doc_id"))] += "filter" not in record
        occurrence = doc_counts[str(record.get("doc_id"))]
        name = str(record.get("filter", NO_FILTER if occurrence < 2 else f"filter-{occurrence}"))
        try:
            if _likelihoods(record.get("filtered_resps")) is None:
                generated.setdefault(name, []).append(_sample(record, REPLIES, None, delimiter))
            for measure, right in _verdicts(record).items():
                if right is None:
                    unclear.add((name, measure))
                else:
                    samples_by_measure.setdefault((name, measure), []).append(
                        _sample(record, measure, right, delimiter)
                    )
        except MISSHAPEN as error:
            raise ResultsError(
                f"{path}: sample {number} is not in the format of lm-evaluation-harness ({first_line(error)})"
            ) from None
    results = [
        _results(task, report, name, measure, samples)
        for (name, measure), samples in samples_by_measure.items()
        if (name, measure) not in unclear
    ]
    if not results and unclear:
        # Measures between 0 and 1, as of answers in words: the answers themselves are read.
        results = [_results(task, report, name, REPLIES, samples) for name, samples in generated.items()]
    if not results:
        raise ResultsError(f"{path}: no measure of its samples says right or wrong, so there is no answer to import")
    return results


def _read_results(path: Path) -> tuple[str, Record]:
    """Read the task's name, and what the results file beside the samples holds; empty if there is none."""
    name = _NAME.fullmatch(path.name)
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
    if name is None:
        with suppress(OSError, UnreadableError):
            report = read_json(path.with_name("results.json"))
            tasks = [task for task in report.get("results", ()) if stem == task or stem.endswith(f"_{task}")]
            if tasks:
                return max(tasks, key=len), report
        return stem, {}
    with suppress(OSError, UnreadableError):
        report = read_json(path.with_name(f"results_{name['date']}.json"))
        if isinstance(report, Mapping):
            return name["task"], report
    return name["task"], {}


def _results(task: str, report: Record, name: str, measure: str, samples: Sequence[HarnessSample]) -> Results:
    unit, norm, _ = NORMS[measure] if any(sample.scores for sample in samples) else (None, None, None)
    stated = (report.get("results") or {}).get(task, {}).get(f"{measure},{name}")
    model = report.get("model_name") or (report.get("config") or {}).get("model")
    return Results(
        harness="lm_eval",
        task=task,
        measure=measure if name == NO_FILTER else f"{measure}-{name}",
        samples=samples,
        version=str(report["lm_eval_version"]) if report.get("lm_eval_version") else None,
        model=str(model) if model else None,
        score_unit=unit,
        score_norm=norm,
        stated=float(stated) if isinstance(stated, (int, float)) else None,
        protocol=of_lm_eval(report, task, measure, name),
    )


def _verdicts(record: Record) -> dict[str, bool | None]:
    """Return for each measure whether the sample is right by it; None if the measure says something else of it."""
    names = record.get("metrics") or [name for name in record if name not in _OWN]
    values = {str(name): record.get(name) for name in names}
    return {
        name: bool(value) if isinstance(value, (bool, int, float)) and value in (0, 1) else None
        for name, value in values.items()
    }


def _sample(record: Record, measure: str, right: bool | None, delimiter: str) -> HarnessSample:
    document = record["doc"] if isinstance(record["doc"], Mapping) else {}
    sample = HarnessSample(
        ids=read_ids(document),
        stem=read_stem(document),
        options=read_option_texts(document),
        target=_target(record.get("target")),
        right=right,
    )
    likelihoods = _likelihoods(record.get("filtered_resps"))
    if likelihoods is None:
        return replace(sample, choice=_reply(record, "filtered_resps"), reply=_reply(record, "resps"))
    if not all(map(math.isfinite, likelihoods)):
        # Nothing is to be learned from the harness's choice among such numbers, and a run folder holds none of them.
        return replace(sample, failed=True)
    continuations = _continuations(record.get("arguments"), delimiter)
    if not sample.options and not are_labels(continuations):
        sample = replace(sample, options=continuations)
    target = _place(sample.target)
    scores = score_options(measure, likelihoods, continuations)
    if scores is None:
        return replace(sample, target=target)
    return replace(sample, target=target, choice=scores.index(max(scores)), scores=scores)


def score_options(measure: str, likelihoods: Sequence[float], texts: Sequence[str]) -> tuple[float, ...] | None:
    """Score each option by a measure, of which the highest is chosen; None if the measure compares others."""
    if measure not in NORMS or len(texts) != len(likelihoods):
        return None
    length = NORMS[measure][2]
    return tuple(value / (length(text) or 1) for value, text in zip(likelihoods, texts, strict=True))


def _target(value: Any) -> Choice | None:
    return None if value is None else str(value)


def _place(target: Choice | None) -> Choice | None:
    """Read the place that a multiple-choice task's target is, which the harness writes as text."""
    return int(target) if isinstance(target, str) and target.isdecimal() else target


def _likelihoods(responses: Any) -> tuple[float, ...] | None:
    """Read the log-likelihood of each continuation, nats; None if the model generated."""
    if not isinstance(responses, list) or not responses:
        return None
    if not all(isinstance(response, list) and len(response) == 2 for response in responses):
        return None
    try:
        return tuple(float(response[0]) for response in responses)
    except MISSHAPEN:
        return None


def _continuations(arguments: Any, delimiter: str) -> tuple[str, ...]:
    """Read the text of each option as the harness measures it, without what stands before it."""
    if isinstance(arguments, Mapping):
        pairs = [list(request.values()) for request in arguments.values() if isinstance(request, Mapping)]
    else:
        pairs = [list(request) for request in arguments or [] if isinstance(request, (list, tuple))]
    return tuple(str(pair[1]).removeprefix(delimiter) for pair in pairs if len(pair) == 2)


def are_labels(texts: Sequence[str]) -> bool:
    """Return whether what was compared are the labels of options, and not their texts."""
    return all(len(text.strip()) <= 2 for text in texts)


def _reply(record: Record, field: str) -> str | None:
    """Return the first reply of a sample, raw or filtered; None if there is no text."""
    value = record.get(field)
    while isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) else None
