"""How a format of results is read: a layout says where a file holds what."""

import json
import math
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from medexam.files import UnreadableError, first_line
from medexam.specs import digest
from medexam_companions.harnesses.imports.document import last_question, lettered_options, listed_texts
from medexam_companions.harnesses.imports.samples import (
    MISSHAPEN,
    HarnessSample,
    Record,
    Results,
    ResultsError,
    find,
    read_choice,
    read_count,
    read_number,
    read_verdict,
    text_or_none,
)

PREDICTION = "prediction"
"""How the measure of a run is called, or begins, where the file has answers and no verdicts."""
NORMS: Mapping[str, tuple[str, str, Callable[[str], int]]] = {
    "acc": ("nats", "sum", lambda _: 1),
    "acc_norm": ("nats per character", "character", len),
    "acc_bytes": ("nats per byte", "byte", lambda text: len(text.encode())),
}
"""Measure of a multiple-choice task -> unit and norm of its scores, and what each is divided by."""
_SHOWN = 60
"""Characters of a setting that a protocol shows; a digest stands for the rest."""


Layout = Mapping[str, Any]
"""Where one harness keeps what, as `layouts.yaml` says, and what opens its files (`open`)."""
Opened = tuple[Iterable[Record], Record, Mapping[str, Record]]
"""What a file holds: a record for each question and trial, what is said of all of them, and of each measure."""


def read_layout(layout: Layout, path: Path, document: Any = None) -> list[Results]:
    """Read the answers under each measure and trial; `document` is what a JSON file holds, None for any other.

    A measure that does not say right or wrong of each sample is left out; answers without verdicts count where no other
    measure is left. Raises `ResultsError` if nothing is left, or a record is in another shape than the layout says.
    """
    number, samples = 0, defaultdict[tuple[str, int], list[HarnessSample]](list)
    try:
        records, about, measures = layout["open"](document, path)
        number = 1
        for record in records:
            for measure, sample in _read_samples(layout, record):
                samples[measure, record.get("trial", 1)].append(sample)
            number += 1
    except (OSError, UnreadableError, zipfile.BadZipFile, *MISSHAPEN) as error:
        place = f"{path}, sample {number}" if number else str(path)
        raise ResultsError(
            f"{place}: is not in the format of {layout['title']}, or not whole ({first_line(error)})"
        ) from None
    unclear = {
        measure
        for (measure, _), group in samples.items()
        if not measure.startswith(PREDICTION) and any(each.right is None and not each.failed for each in group)
    }
    clear = [(measure, trial) for measure, trial in samples if measure and measure not in unclear]
    with_verdicts = [key for key in clear if any(sample.right is not None for sample in samples[key])]
    if not clear:
        raise ResultsError(
            f"{path}: no measure of its samples says right or wrong, so there is no answer to import; were samples "
            "logged and scored?"
        )
    several = len({trial for _, trial in clear}) > 1
    folder = re.search(layout["model_folder"], path.resolve().as_posix()) if layout["model_folder"] else None
    results = []
    for measure, trial in with_verdicts or clear:
        # A sample without a measure failed, and stands under every measure of its trial.
        group = [*samples[measure, trial], *samples.get(("", trial), ())]
        has_scores = any(sample.scores for sample in group)
        unit, norm, _ = NORMS[measure.partition("-")[0]] if has_scores else (None, None, None)
        about_measure = {**about, "measure": measures.get(measure, {})}
        task = find(about_measure, layout["task"]) or path.name.removesuffix(".gz").rpartition(".")[0]
        result = Results(
            layout["harness"],
            re.sub(r"^(details|samples)_|_\d{4}-\d\d-\d\dT[\d.-]+$", "", str(task)),
            f"{measure}-{layout['trials']}-{trial}" if several else measure,
            group,
            title=layout["title"],
            version=text_or_none(find(about_measure, layout["version"])),
            model=folder[1] if folder else text_or_none(find(about_measure, layout["model"])),
            score_unit=unit,
            score_norm=norm,
            stated=None if several else read_number(find(about_measure, layout["stated"]), most=1),
            protocol={line: _show(about_measure, paths) for line, paths in layout["protocol"].items()},
            companions=tuple(path.with_name(name) for name in layout["further_files"]),
        )
        results.append(result)
    return results


def _read_samples(layout: Layout, record: Record) -> Iterator[tuple[str, HarnessSample]]:
    """Yield the sample of a record under each measure."""
    verdicts = find(record, layout["verdicts"])
    if verdicts is not None and not isinstance(verdicts, Mapping):
        verdicts = {PREDICTION: verdicts}
    if record.get("failed"):
        yield from ((str(measure), HarnessSample(failed=True)) for measure in verdicts or [""])
        return
    stem = last_question(find(record, layout["prompt"]))
    options = tuple(text.strip() for text in listed_texts(find(record, layout["options"])))
    likelihoods, compared = find(record, layout["likelihoods"]) or (), record.get("compared", options)
    sample = HarnessSample(
        ids=record.get("ids", ()),
        stem=stem,
        options=lettered_options(stem or "") if are_labels(options) else options,
        choice=read_choice(find(record, layout["choice"])),
        target=read_choice(find(record, layout["target"])),
        reply=text_or_none(find(record, layout["reply"])),
        prompt_tokens=read_count(find(record, layout["prompt_tokens"])),
        completion_tokens=read_count(find(record, layout["completion_tokens"])),
        latency_s=read_number(find(record, layout["latency_s"])),
    )
    for measure, value in (verdicts or {PREDICTION: None}).items():
        one = replace(sample, right=read_verdict(value))
        yield str(measure), _with_likelihoods(one, str(measure), likelihoods, compared) if likelihoods else one


def are_labels(texts: Sequence[str]) -> bool:
    """Return whether texts are the labels of options, A, B, C... or 1, 2, 3..., and not their texts."""
    labels = [text.strip(" .()") for text in texts]
    return labels in (list(ascii_uppercase[: len(labels)]), [str(place) for place in range(1, len(labels) + 1)])


def _with_likelihoods(
    sample: HarnessSample, measure: str, likelihoods: Sequence[float], compared: Sequence[str]
) -> HarnessSample:
    """Return a sample whose options were scored, with the one of the highest score as its choice.

    Without scores if the measure compares others, or if the texts that were compared are not known.
    """
    if not all(map(math.isfinite, likelihoods)):
        # Nothing is to be learned from the harness's choice among such numbers, and a run folder holds none of them.
        return replace(sample, failed=True)
    name = measure.partition("-")[0]
    if name not in NORMS or len(compared) != len(likelihoods):
        return sample
    scores = tuple(value / (NORMS[name][2](text) or 1) for value, text in zip(likelihoods, compared, strict=True))
    return replace(sample, choice=scores.index(max(scores)), scores=scores)


def _show(about: Record, paths: str) -> str:
    """Write settings as a line of a protocol, without empty ones; of a long one its beginning and a digest."""
    settings: dict[str, Any] = {}
    for path in paths.split():
        value = find(about, path)
        settings |= value if isinstance(value, Mapping) else {path.rpartition(".")[2]: value}
    lines = []
    for name, value in settings.items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        text_of_value = f"{' '.join(text[:_SHOWN].split())} {digest({'': value})}" if len(text) > _SHOWN else str(value)
        lines += [f"{name} {text_of_value}"] * (value not in (None, "", {}, []))
    return ", ".join(lines)
