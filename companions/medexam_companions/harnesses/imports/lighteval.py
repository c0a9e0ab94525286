"""lighteval: the `details_TASK_DATE.parquet` of `--save-details`, of its first versions and of today's.

Today a row is `doc`, `model_response` and `metric`; before, the same fields stood beside each other. Some versions
wrote lists and objects as Python shows them.
"""

import ast
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.inputs import UnreadableError, first_line, open_parquet, parquet_rows
from medexam_companions.harnesses.imports.document import lettered_options
from medexam_companions.harnesses.imports.samples import MISSHAPEN, HarnessSample, Results, ResultsError, text_or_none

Record = Mapping[str, Any]
_NAME = re.compile(r"details_(?P<task>.+?)(_\d{4}-\d\d-\d\dT[\d.-]+)?\.parquet")
_SHOWN = re.compile(r"<[\w.]+: ('[^']*'|\d+)>|\b(?:np|numpy)\.\w+\(([^()]*)\)|\b(?:nan|inf)\b")
"""What Python shows of values that are no literals."""
_NORMS = {"acc": ("nats", "sum"), "acc_norm": ("nats per character", "character")}


def is_lighteval(columns: Sequence[str]) -> bool:
    """Return whether the columns of a Parquet file are those of lighteval's details."""
    names = set(columns)
    return {"doc", "model_response", "metric"} <= names or {"example", "predictions", "choices"} <= names


def read_lighteval(path: Path) -> list[Results]:
    """Read the samples under each metric; raises `ResultsError` if a row is of another shape."""
    by_measure: dict[str, list[HarnessSample]] = {}
    unclear: set[str] = set()
    number = 0
    try:
        with open_parquet(path) as file:
            for row in parquet_rows(file):
                number += 1
                record = _read_row({name: _literal(value) for name, value in row.items()})
                for measure, value in record.pop("metrics").items():
                    if value not in (0, 1):
                        unclear.add(measure)
                    by_measure.setdefault(measure, []).append(_sample(measure, bool(value), **record))
    except (UnreadableError, *MISSHAPEN) as error:
        raise ResultsError(f"{path}, row {number}: is not in the format of lighteval ({first_line(error)})") from None
    match = _NAME.fullmatch(path.name)
    task = match["task"] if match else path.name.removesuffix(".parquet")
    results = []
    for measure, samples in by_measure.items():
        unit, norm = _NORMS.get(measure, (None, None)) if any(sample.scores for sample in samples) else (None, None)
        if measure not in unclear:
            results.append(
                Results("lighteval", task, measure, samples, model=_model(path), score_unit=unit, score_norm=norm)
            )
    if not results:
        raise ResultsError(f"{path}: no metric of its samples says right or wrong, so there is no answer to import")
    return results


def _read_row(row: Record) -> dict[str, Any]:
    """Read what a row of any version says."""
    doc, response = row.get("doc"), row.get("model_response")
    if isinstance(doc, Mapping) and isinstance(response, Mapping):
        outcome = response.get("logprobs") or response.get("text") or []
        return {
            "query": doc["query"],
            "choices": doc.get("choices") or [],
            "gold": doc.get("gold_index"),
            "predictions": outcome,
            "metrics": row["metric"],
        }
    metrics = row.get("metrics")
    if not isinstance(metrics, Mapping):
        metrics = {name: value for name, value in row.items() if name.startswith(("acc", "em", "mc1"))}
    return {
        "query": row["example"],
        "choices": row.get("choices") or [],
        "gold": row.get("gold_index"),
        "predictions": row.get("predictions") or [],
        "metrics": metrics,
    }


def _sample(
    measure: str, right: bool, *, query: str, choices: Sequence[Any], gold: Any, predictions: Sequence[Any]
) -> HarnessSample:
    texts = [str(choice).strip() for choice in choices]
    options = tuple(texts) if any(len(text) > 2 for text in texts) else lettered_options(query)
    places = gold if isinstance(gold, list) else [gold]
    target = places[0] if len(places) == 1 and isinstance(places[0], int) else None
    numbers = [prediction[0] if isinstance(prediction, list | tuple) else prediction for prediction in predictions]
    if len(numbers) == len(texts) and numbers and all(isinstance(number, int | float) for number in numbers):
        if not all(map(math.isfinite, numbers)):
            return HarnessSample(stem=query, options=options, target=target, right=right, failed=True)
        lengths = [max(len(text), 1) if measure == "acc_norm" else 1 for text in texts]
        scores = tuple(float(number) / length for number, length in zip(numbers, lengths, strict=True))
        choice = scores.index(max(scores)) if measure in _NORMS else None
        option_scores = scores if choice is not None else None
        return HarnessSample(
            stem=query, options=options, target=target, right=right, choice=choice, scores=option_scores
        )
    reply = text_or_none(numbers[0]) if numbers else None
    return HarnessSample(stem=query, options=options, target=target, right=right, choice=reply, reply=reply)


def _literal(value: Any) -> Any:
    """Parse a list or an object that Python has written as text; return any other value as it is."""
    if not isinstance(value, str) or value[:1] not in "[{(" or not value:
        return value
    plain = _SHOWN.sub(lambda match: match[1] or match[2] or "1e999", value)
    try:
        return ast.literal_eval(plain)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def _model(path: Path) -> str | None:
    """Name the model by the folders of lighteval's results, `details/MODEL/DATE/`; None for a file elsewhere."""
    parts = path.resolve().parts
    inside = parts[len(parts) - parts[::-1].index("details") : -2] if "details" in parts else ()
    return "/".join(inside) or None
