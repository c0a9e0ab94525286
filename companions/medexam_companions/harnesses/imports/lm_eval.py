"""lm-evaluation-harness: the `samples_TASK_DATE.jsonl` of `--log_samples`, with the `results_DATE.json` beside it.

Of a multiple-choice task each measure chooses for itself: `acc` takes the most likely option, `acc_norm` the most
likely by character and `acc_bytes` by byte, of equals the first, as the harness's `process_results` does. Of a task
that generates, each filter reads the replies in its own way.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medexam_companions.harnesses.imports.document import read_ids, read_option_texts, read_stem
from medexam_companions.harnesses.imports.layout import PREDICTION, Opened, are_labels
from medexam_companions.harnesses.imports.samples import MISSHAPEN, Record, read_beside, read_lines

_NAME = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(\.gz)?")
_NO_FILTER = "none"
_OWN = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
}
"""Fields of a sample that are no measure."""


def open_lm_eval(_: Any, path: Path) -> Opened:
    """Open a file of samples, with the file of results beside it."""
    name = _NAME.fullmatch(path.name)
    report: Record = read_beside(path, f"results_{name['date']}.json") if name else {}
    task = name["task"] if name else ""
    config, stated = ((report.get(part) or {}).get(task) or {} for part in ("configs", "results"))
    steps = {each["name"]: each.get("filter") for each in config.get("filter_list") or ()}
    metrics = {each["metric"]: each for each in config.get("metric_list") or ()}
    measures = {}
    for names, value in stated.items():
        measure, _, filter_name = names.partition(",")
        about = {"stated": value, "metric": metrics.get(measure), "filter": steps.get(filter_name)}
        measures[_label(measure, filter_name)] = about
    delimiter = str(config.get("target_delimiter", " "))
    records = (_record(record, delimiter) for record in read_lines(path))
    return records, {**report, "task": config, "version": (report.get("versions") or {}).get(task)}, measures


def _label(measure: str, filter_name: str) -> str:
    return measure if filter_name == _NO_FILTER else f"{measure}-{filter_name}"


def _record(record: Record, delimiter: str) -> Record:
    measures, filter_name = record.get("metrics") or record.keys() - _OWN, str(record.get("filter", _NO_FILTER))
    verdicts = {_label(measure, filter_name): record.get(measure) for measure in measures}
    document = record["doc"] if isinstance(record["doc"], Mapping) else {}
    likelihoods, options = _likelihoods(record.get("filtered_resps")), read_option_texts(document)
    target = record.get("target")
    fields = {"ids": read_ids(document), "prompt": read_stem(document), "options": options, "verdicts": verdicts}
    if likelihoods is None:
        # Where all measures are between 0 and 1, as of answers in words, the answers themselves are read.
        verdicts[_label(PREDICTION, filter_name)] = None
        replies = {"choice": _reply(record, "filtered_resps"), "reply": _reply(record, "resps")}
        return {**fields, **replies, "target": None if target is None else str(target)}
    compared = _continuations(record.get("arguments"), delimiter)
    if not options and not are_labels(compared):
        fields["options"] = compared
    place = int(target) if isinstance(target, str) and target.isdecimal() else target
    return {**fields, "likelihoods": likelihoods, "compared": compared, "target": place}


def _likelihoods(responses: Any) -> tuple[float, ...] | None:
    """Read the log-likelihood of each continuation, nats; None if the model generated."""
    if not isinstance(responses, list) or not responses or not all(isinstance(pair, list) for pair in responses):
        return None
    try:
        return tuple(float(likelihood) for likelihood, _ in responses)
    except MISSHAPEN:
        return None


def _continuations(arguments: Any, delimiter: str) -> tuple[str, ...]:
    """Read the text of each option as the harness measures it, without what stands before it."""
    requests = arguments.values() if isinstance(arguments, Mapping) else arguments or []
    pairs = [list(request.values()) if isinstance(request, Mapping) else list(request) for request in requests]
    return tuple(str(pair[1]).removeprefix(delimiter) for pair in pairs if len(pair) == 2)


def _reply(record: Record, name: str) -> str | None:
    """Return the first reply of a sample, raw or filtered; None if there is no text."""
    value = record.get(name)
    while isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) else None
