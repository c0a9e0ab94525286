"""Every Eval Ever: the samples of an evaluation as JSON Lines, with the evaluation's own JSON beside them.

The layout is that of `instance_level_eval.schema.json` and `eval.schema.json`, versions 0.2.0 to 0.3.0: `UUID.json`
says what was run, and `UUID_samples.jsonl` (`UUID.jsonl` before 0.3) holds a line for each sample and result. Each
result is one run.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from medexam.inputs import UnreadableError, first_line, read_json
from medexam_companions.harnesses.imports.lines import read_lines
from medexam_companions.harnesses.imports.samples import (
    MISSHAPEN,
    HarnessSample,
    Results,
    ResultsError,
    read_count,
    read_seconds,
    text_or_none,
)
from medexam_companions.harnesses.imports.told import of_every_eval_ever

Record = Mapping[str, Any]
SAMPLES = "_samples.jsonl"
"""How the name of a file of samples ends, behind the UUID."""


def is_sample(record: object) -> bool:
    """Return whether the first line of a file is a sample of this schema."""
    return isinstance(record, Mapping) and {"evaluation_id", "sample_id", "interaction_type", "input"} <= record.keys()


def is_evaluation(document: object) -> bool:
    """Return whether a JSON document is an evaluation of this schema."""
    return isinstance(document, Mapping) and {"evaluation_id", "eval_library", "evaluation_results"} <= document.keys()


def find_samples(path: Path, evaluation: Record) -> Path:
    """Find the file of samples that an evaluation names; raises `ResultsError` if it does not lie beside it."""
    file_name = (evaluation.get("detailed_evaluation_results") or {}).get("file_path")
    stem = path.name.removesuffix(".json")
    names = [*([PurePosixPath(str(file_name)).name] if file_name else []), f"{stem}{SAMPLES}", f"{stem}.jsonl"]
    samples_path = next((candidate for name in names if (candidate := path.with_name(name)).is_file()), None)
    if samples_path is None:
        raise ResultsError(f"{path}: has totals alone, no answers; put {names[0]} beside it, which holds the samples")
    return samples_path


def read_every_eval_ever(path: Path) -> list[Results]:
    """Read the samples of each result; raises `ResultsError` if a line is no sample."""
    evaluation = _read_evaluation(path)
    results_by_id = {entry.get("evaluation_result_id"): entry for entry in evaluation.get("evaluation_results") or ()}
    values: dict[tuple[str, str | None], list[HarnessSample]] = {}
    unclear: set[tuple[str, str | None]] = set()
    number = 0
    try:
        for record in read_lines(path):
            number += 1
            group = (str(record["evaluation_name"]), record.get("evaluation_result_id"))
            if record["evaluation"]["score"] not in (0, 1):
                unclear.add(group)
            values.setdefault(group, []).append(_sample(record))
    except MISSHAPEN as error:
        raise ResultsError(
            f"{path}: record {number} is not a sample of Every Eval Ever ({first_line(error)})"
        ) from None
    library = evaluation.get("eval_library") or {}
    results = [
        Results(
            harness="every_eval_ever",
            task=task,
            measure=str(result or _measure(evaluation, task)),
            samples=samples,
            version=None if library.get("version") in (None, "unknown") else str(library["version"]),
            model=text_or_none((evaluation.get("model_info") or {}).get("id")),
            stated=_stated(results_by_id.get(result), samples),
            protocol=of_every_eval_ever(evaluation, results_by_id.get(result)),
        )
        for (task, result), samples in values.items()
        if (task, result) not in unclear
    ]
    if not results:
        raise ResultsError(f"{path}: no result of its samples says right or wrong, so there is no answer to import")
    return results


def _read_evaluation(path: Path) -> Record:
    """Read the evaluation beside a file of samples; empty if there is none."""
    name = path.name.removesuffix(".gz")
    stem = name.removesuffix(SAMPLES) if name.endswith(SAMPLES) else name.removesuffix(".jsonl")
    with suppress(OSError, UnreadableError):
        evaluation = read_json(path.with_name(f"{stem}.json"))
        return evaluation if is_evaluation(evaluation) else {}
    return {}


def _measure(evaluation: Record, task: str) -> str:
    """Name what the results of a task measure, if the evaluation names one thing; else `score`."""
    configs = [
        entry["metric_config"]
        for entry in evaluation.get("evaluation_results") or ()
        if entry["evaluation_name"] == task
    ]
    names = {str(config.get("metric_id") or config.get("metric_name") or "score") for config in configs}
    return names.pop() if len(names) == 1 else "score"


def _stated(result: Record | None, samples: Sequence[HarnessSample]) -> float | None:
    """Read the score of a result, 0 to 1; None if it is missing or in other units."""
    if result is None or not samples:
        return None
    score = (result.get("score_details") or {}).get("score")
    return float(score) if isinstance(score, (int, float)) and 0 <= score <= 1 else None


def _sample(record: Record) -> HarnessSample:
    prompt, usage = record["input"], record.get("token_usage") or {}
    latency = read_seconds((record.get("performance") or {}).get("latency_ms"))
    extracts = [
        attribution["extracted_value"] for attribution in record["answer_attribution"] if attribution.get("is_terminal")
    ]
    answers = [value for value in extracts if isinstance(value, str)]
    replies = _texts((record.get("output") or {}).get("raw"))
    options, targets = _texts(prompt.get("choices")), _texts(prompt.get("reference"))
    # A number may count the options from 0 or from 1, and the schema does not say which.
    target = targets[0] if len(targets) == 1 and not (targets[0].isdecimal() and options) else None
    return HarnessSample(
        ids=(str(record["sample_id"]),),
        stem=text_or_none(prompt.get("raw")),
        options=options,
        choice=(answers or replies or (None,))[-1] or None,
        target=target,
        right=bool(record["evaluation"]["is_correct"]),
        reply=replies[0] if replies else None,
        prompt_tokens=read_count(usage.get("input_tokens")),
        completion_tokens=read_count(usage.get("output_tokens")),
        latency_s=None if latency is None else latency / 1000,
        failed=bool(record.get("error")),
    )


def _texts(value: Any) -> tuple[str, ...]:
    """Return texts of the schema as a tuple; they were one text before version 0.2.1."""
    return (value,) if isinstance(value, str) else tuple(map(str, value or ()))
