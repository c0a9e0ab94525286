"""HELM: the files of one of its runs, as its runner and its `helm-summarize` write them.

`scenario_state.json` holds what was asked and replied, and `per_instance_stats.json` beside it what each metric says.
`display_predictions.json` holds both in short, with the questions in `instances.json`. The layout is that of
`helm/benchmark/runner.py` and `helm/benchmark/presentation/run_display.py` in crfm-helm 0.5.16. Each metric that says
right or wrong, and each trial, is one run; questions that HELM perturbed are left out, as in its own accuracy.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.inputs import UnreadableError, first_line, read_json
from medexam_companions.harnesses.imports.document import read_ids
from medexam_companions.harnesses.imports.samples import (
    MISSHAPEN,
    HarnessSample,
    Results,
    ResultsError,
    read_count,
    read_seconds,
    text_or_none,
)
from medexam_companions.harnesses.imports.told import of_helm

Record = Mapping[str, Any]
STATE, STATS, PREDICTIONS, INSTANCES = (
    f"{name}.json" for name in ("scenario_state", "per_instance_stats", "display_predictions", "instances")
)
_MEASURE = re.compile(r"(?:.*_)?(?:exact_match|correctness|accuracy)")
"""Names of metrics that say right or wrong of a sample; HELM keeps dozens that count tokens and time beside them."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What became of one question in one trial."""

    instance: Record
    trial: int
    stats: Mapping[str, float]
    """Metric -> its value of this question."""
    reply: str | None
    choice: int | None
    """Place among the references; None if the reply is none of them."""
    failed: bool = False
    latency_s: float | None = None


def is_helm(document: object) -> bool:
    """Return whether a JSON document is a file of answers of HELM."""
    if isinstance(document, list) and document:
        first = document[0]
        return isinstance(first, Mapping) and {"instance_id", "train_trial_index", "stats"} <= first.keys()
    return isinstance(document, Mapping) and {"adapter_spec", "request_states"} <= document.keys()


def read_helm(path: Path, document: Any) -> list[Results]:
    """Read the answers under each metric; raises `ResultsError` if a file beside it is missing, or it is damaged."""
    try:
        if isinstance(document, list) and "predicted_text" in document[0]:
            companion = path.with_name(INSTANCES)
            answers = list(_short_answers(document, _load(path, companion)))
        else:
            is_state = isinstance(document, Mapping)
            companion = path.with_name(STATS if is_state else STATE)
            other = _load(path, companion)
            answers = list(_answers(document, other) if is_state else _answers(other, document))
        results = _sort(path, companion, answers)
    except MISSHAPEN as error:
        raise ResultsError(f"{path}: is not a complete file of a HELM run ({first_line(error)})") from None
    if not results:
        raise ResultsError(f"{path}: no metric of HELM says right or wrong, so there is no answer to import")
    return results


def _load(path: Path, companion: Path) -> Any:
    try:
        return read_json(companion)
    except (OSError, UnreadableError) as error:
        raise ResultsError(
            f"{path}: needs {companion.name} beside it, which cannot be read ({first_line(error)}); import it from the "
            "folder of HELM's run"
        ) from None


def _answers(state: Record, stats: Sequence[Record]) -> Iterator[_Answer]:
    """Yield what `scenario_state.json` and `per_instance_stats.json` say of each unperturbed question and trial."""
    values: dict[tuple[str, int], dict[str, float]] = {}
    for entry in stats:
        if not entry.get("perturbation"):
            instance_stats = values.setdefault((entry["instance_id"], entry["train_trial_index"]), {})
            instance_stats.update(
                {stat["name"]["name"]: stat["mean"] for stat in entry["stats"] if stat.get("mean") is not None}
            )
    places: set[tuple[str, int]] = set()
    for request in state["request_states"]:
        instance = request["instance"]
        place = (instance["id"], request["train_trial_index"])
        # Options that are asked one by one have a request each, and some a second one that calibrates.
        if instance.get("perturbation") or place in places:
            continue
        places.add(place)
        result, instance_stats = request.get("result") or {}, values.get(place, {})
        reply = next((completion.get("text") for completion in result.get("completions") or ()), None)
        mapping, index = request.get("output_mapping"), instance_stats.get("predicted_index")
        pattern = state["adapter_spec"].get("output_mapping_pattern")
        choice = None if mapping is None else _place(list(mapping), _mapped(reply, pattern))
        if index is not None:
            reply, choice = None, read_count(index)
        yield _Answer(
            instance,
            place[1],
            instance_stats,
            reply,
            choice,
            result.get("success") is not True,
            result.get("request_time"),
        )


def _short_answers(predictions: Sequence[Record], instances: Sequence[Record]) -> Iterator[_Answer]:
    """Yield what `display_predictions.json` says of each unperturbed question and trial."""
    instances_by_id = {instance["id"]: instance for instance in instances if not instance.get("perturbation")}
    for prediction in predictions:
        if prediction.get("perturbation"):
            continue
        instance = instances_by_id[prediction["instance_id"]]
        choice = read_count(prediction.get("reference_index"))
        reply = prediction["predicted_text"] if choice is None else None
        if choice is None and prediction.get("mapped_output") is not None:
            choice = _place(
                [reference["output"]["text"] for reference in instance["references"]], prediction["mapped_output"]
            )
        yield _Answer(instance, prediction["train_trial_index"], prediction["stats"], reply, choice)


def _mapped(reply: str | None, pattern: str | None) -> str:
    """Return the part of a reply that HELM looks up among the labels."""
    text = (text_or_none(reply) or "").strip()
    if not pattern:
        return text
    match = re.search(pattern, text)
    return "" if match is None else match[1] if match.groups() else match[0]


def _place(values: Sequence[str], value: str) -> int | None:
    return values.index(value) if value in values else None


def _sort(path: Path, companion: Path, answers: Sequence[_Answer]) -> list[Results]:
    spec = _read_companion(path, "run_spec.json", {})
    adapter, name = spec.get("adapter_spec") or {}, str(spec.get("name") or path.parent.name)
    names = {name: None for answer in answers for name in answer.stats if _MEASURE.fullmatch(name)}
    trials = sorted({answer.trial for answer in answers})
    return [
        Results(
            harness="helm",
            task=re.sub(r"(^|[:,])model(_deployment)?=[^,]*", "", name),
            measure=measure if len(trials) == 1 else f"{measure}-trial-{trial + 1}",
            samples=[_sample(answer, measure) for answer in answers if answer.trial == trial],
            model=text_or_none(adapter.get("model")),
            stated=_stated(path, measure) if len(trials) == 1 else None,
            protocol=of_helm(spec, measure),
            companions=(companion,),
        )
        for measure in names
        for trial in trials
    ]


def _read_companion(path: Path, name: str, default: Any) -> Any:
    with suppress(OSError, UnreadableError):
        document = read_json(path.with_name(name))
        return document if isinstance(document, type(default)) else default
    return default


def _stated(path: Path, measure: str) -> float | None:
    """Read the mean that HELM states over the questions as they were; None if it states none, or one for each split."""
    means = [
        entry.get("mean")
        for entry in _read_companion(path, "stats.json", [])
        if entry["name"]["name"] == measure and not entry["name"].get("perturbation")
    ]
    return float(means[0]) if len(means) == 1 and isinstance(means[0], (int, float)) else None


def _sample(answer: _Answer, measure: str) -> HarnessSample:
    instance, value = answer.instance, answer.stats.get(measure)
    references = instance["references"]
    right_places = [place for place, reference in enumerate(references) if "correct" in reference["tags"]]
    # Of options that score alike, HELM counts the share that is right.
    has_verdict = value in (0, 1)
    return HarnessSample(
        ids=(str(instance["id"]), *read_ids(instance.get("extra_data") or {})),
        stem=text_or_none(instance["input"].get("text")),
        options=tuple(reference["output"]["text"] for reference in references),
        choice=answer.choice,
        target=right_places[0] if len(right_places) == 1 else None,
        right=bool(value) if has_verdict else None,
        reply=text_or_none(answer.reply),
        prompt_tokens=_count(answer, "num_prompt_tokens"),
        completion_tokens=_count(answer, "num_output_tokens"),
        latency_s=read_seconds(answer.latency_s),
        failed=answer.failed or value is None,
    )


def _count(answer: _Answer, name: str) -> int | None:
    return read_count(answer.stats.get(name))
