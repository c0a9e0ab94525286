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

from medexam.experiments.imports.document import read_ids
from medexam.experiments.imports.samples import (
    MISSHAPEN,
    Results,
    ResultsError,
    Sample,
    read_count,
    read_seconds,
    read_text,
)
from medexam.experiments.imports.told import of_helm
from medexam.inputs import UnreadableError, first_line, read_json

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
    chosen: int | None
    """Place among the references; None if the reply is none of them."""
    failed: bool = False
    latency_s: float | None = None


def is_helm(document: object) -> bool:
    """Whether a JSON document is a file of answers of HELM."""
    if isinstance(document, list) and document:
        first = document[0]
        return isinstance(first, Mapping) and {"instance_id", "train_trial_index", "stats"} <= first.keys()
    return isinstance(document, Mapping) and {"adapter_spec", "request_states"} <= document.keys()


def read_helm(path: Path, document: Any) -> list[Results]:
    """The answers under each metric; raises `ResultsError` if a file beside it is missing, or it is damaged."""
    try:
        if isinstance(document, list) and "predicted_text" in document[0]:
            beside = path.with_name(INSTANCES)
            answers = list(_short_answers(document, _load(path, beside)))
        else:
            is_state = isinstance(document, Mapping)
            beside = path.with_name(STATS if is_state else STATE)
            other = _load(path, beside)
            answers = list(_answers(document, other) if is_state else _answers(other, document))
        found = _sort(path, beside, answers)
    except MISSHAPEN as error:
        raise ResultsError(f"{path}: is no whole file of a run of HELM ({first_line(error)})") from None
    if not found:
        raise ResultsError(f"{path}: no metric of HELM says right or wrong, so there is no answer to import")
    return found


def _load(path: Path, beside: Path) -> Any:
    try:
        return read_json(beside)
    except (OSError, UnreadableError) as error:
        raise ResultsError(
            f"{path}: needs {beside.name} beside it, which cannot be read ({first_line(error)}); import it from the "
            "folder of HELM's run"
        ) from None


def _answers(state: Record, stats: Sequence[Record]) -> Iterator[_Answer]:
    """What `scenario_state.json` and `per_instance_stats.json` say of each unperturbed question and trial."""
    values: dict[tuple[str, int], dict[str, float]] = {}
    for each in stats:
        if not each.get("perturbation"):
            said = values.setdefault((each["instance_id"], each["train_trial_index"]), {})
            said.update({one["name"]["name"]: one["mean"] for one in each["stats"] if one.get("mean") is not None})
    seen: set[tuple[str, int]] = set()
    for request in state["request_states"]:
        instance = request["instance"]
        place = (instance["id"], request["train_trial_index"])
        # Options that are asked one by one have a request each, and some a second one that calibrates.
        if instance.get("perturbation") or place in seen:
            continue
        seen.add(place)
        result, said = request.get("result") or {}, values.get(place, {})
        reply = next((one.get("text") for one in result.get("completions") or ()), None)
        mapping, index = request.get("output_mapping"), said.get("predicted_index")
        pattern = state["adapter_spec"].get("output_mapping_pattern")
        chosen = None if mapping is None else _place(list(mapping), _mapped(reply, pattern))
        if index is not None:
            reply, chosen = None, read_count(index)
        yield _Answer(
            instance, place[1], said, reply, chosen, result.get("success") is not True, result.get("request_time")
        )


def _short_answers(predictions: Sequence[Record], instances: Sequence[Record]) -> Iterator[_Answer]:
    """What `display_predictions.json` says of each unperturbed question and trial."""
    asked = {each["id"]: each for each in instances if not each.get("perturbation")}
    for each in predictions:
        if each.get("perturbation"):
            continue
        instance = asked[each["instance_id"]]
        chosen = read_count(each.get("reference_index"))
        reply = each["predicted_text"] if chosen is None else None
        if chosen is None and each.get("mapped_output") is not None:
            chosen = _place([one["output"]["text"] for one in instance["references"]], each["mapped_output"])
        yield _Answer(instance, each["train_trial_index"], each["stats"], reply, chosen)


def _mapped(reply: str | None, pattern: str | None) -> str:
    """The part of a reply that HELM looks up among the labels."""
    text = (read_text(reply) or "").strip()
    if not pattern:
        return text
    match = re.search(pattern, text)
    return "" if match is None else match[1] if match.groups() else match[0]


def _place(values: Sequence[str], value: str) -> int | None:
    return values.index(value) if value in values else None


def _sort(path: Path, beside: Path, answers: Sequence[_Answer]) -> list[Results]:
    spec = _beside(path, "run_spec.json", {})
    adapter, name = spec.get("adapter_spec") or {}, str(spec.get("name") or path.parent.name)
    names = {name: None for each in answers for name in each.stats if _MEASURE.fullmatch(name)}
    trials = sorted({each.trial for each in answers})
    return [
        Results(
            harness="helm",
            task=re.sub(r"(^|[:,])model(_deployment)?=[^,]*", "", name),
            measure=measure if len(trials) == 1 else f"{measure}-trial-{trial + 1}",
            samples=[_sample(each, measure) for each in answers if each.trial == trial],
            model=read_text(adapter.get("model")),
            stated=_stated(path, measure) if len(trials) == 1 else None,
            protocol=of_helm(spec, measure),
            beside=(beside,),
        )
        for measure in names
        for trial in trials
    ]


def _beside(path: Path, name: str, default: Any) -> Any:
    with suppress(OSError, UnreadableError):
        found = read_json(path.with_name(name))
        return found if isinstance(found, type(default)) else default
    return default


def _stated(path: Path, measure: str) -> float | None:
    """The mean that HELM states over the questions as they were; None if it states none, or one for each split."""
    means = [
        one.get("mean")
        for one in _beside(path, "stats.json", [])
        if one["name"]["name"] == measure and not one["name"].get("perturbation")
    ]
    return float(means[0]) if len(means) == 1 and isinstance(means[0], (int, float)) else None


def _sample(answer: _Answer, measure: str) -> Sample:
    instance, value = answer.instance, answer.stats.get(measure)
    references = instance["references"]
    right = [place for place, one in enumerate(references) if "correct" in one["tags"]]
    # Of options that score alike, HELM counts the share that is right.
    is_told = value in (0, 1)
    return Sample(
        ids=(str(instance["id"]), *read_ids(instance.get("extra_data") or {})),
        stem=read_text(instance["input"].get("text")),
        options=tuple(one["output"]["text"] for one in references),
        chosen=answer.chosen,
        target=right[0] if len(right) == 1 else None,
        right=bool(value) if is_told else None,
        reply=read_text(answer.reply),
        prompt_tokens=_count(answer, "num_prompt_tokens"),
        completion_tokens=_count(answer, "num_output_tokens"),
        latency_s=read_seconds(answer.latency_s),
        failed=answer.failed or value is None,
    )


def _count(answer: _Answer, name: str) -> int | None:
    return read_count(answer.stats.get(name))
