"""A run as the files of other harnesses: `formats.yaml` says what they hold, and here is what is put into them.

A prompt that a file keeps with an answer is the printed question; the file's metadata say how it was really asked.
"""

import hashlib
import json
import uuid
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.experiments import StoredRun
from medexam.files import file_name, whole_file, write_whole
from medexam.questions import Task
from medexam.specs import parse_yaml
from medexam_companions.harnesses.exports.answers import ExportedAnswer, ExportedRun
from medexam_companions.harnesses.exports.hub import write_hub


def write_lm_eval(exported: ExportedRun, folder: Path) -> list[Path]:
    """Write `samples_TASK_DATE.jsonl` and `results_DATE.json` into a folder of the run's own; raises `OSError`.

    A run whose options were scored by the sum of their log-likelihoods is a task of multiple choice, any other one that
    generates.
    """
    by_scores, task = not exported.in_words and all(map(_is_by_scores, exported.answers)), exported.values["task"]
    date = datetime.fromisoformat(exported.values["ended_at"]).strftime("%Y-%m-%dT%H-%M-%S.%f")
    samples = folder / exported.run.folder.name / f"samples_{task}_{date}.jsonl"
    results = samples.with_name(f"results_{date}.json")
    samples.parent.mkdir(parents=True, exist_ok=True)
    records, means = [], {f"{name},none": value for name, value in exported.means.items()}
    if not exported.in_words:
        measure = "acc" if by_scores else "exact_match"
        means = {f"{measure},none": exported.values["accuracy"]}
        means[f"{measure}_stderr,none"] = exported.values["standard_error"]
    for place, answer in enumerate(exported.answers):
        scores = answer.scores if exported.in_words else {measure: answer.values["score"]}
        fields = _scored(answer) if by_scores else _generated(answer)
        names = ("key", "question", "context", "given_answer", "given_reasoning", "exam", "discipline")
        doc = {name: value for name in names if (value := answer.values.get(name))} | {
            "choices": answer.values["options"]
        }
        values = {**answer.values, **fields, "doc": doc, "place": place, "measures": list(scores)}
        records.append({**_render("lm-eval", "sample", values), **scores})
    values = {
        **exported.values,
        "means": {"alias": task, **means},
        "higher_is_better": {name.partition(",")[0]: True for name in means if "_stderr" not in name},
        "output_type": "multiple_choice" if by_scores else "generate_until",
    }
    _write_lines(samples, records)
    write_whole(results, json.dumps(_render("lm-eval", "results", values), ensure_ascii=False, indent=2) + "\n")
    return [samples, results]


def write_inspect(exported: ExportedRun, folder: Path) -> list[Path]:
    """Write an `.eval` log into `folder`, packed by Deflate, which every reader knows; raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    date = datetime.fromisoformat(exported.values["ended_at"]).strftime("%Y-%m-%dT%H-%M-%S%z").replace("+", "-")
    path = folder / "{}_{task}_{spec_digest}.eval".format(date, **exported.values)
    parts = [(answer, {**exported.values, **answer.values}) for answer in exported.answers]
    members = {f"samples/{each.item.key}_epoch_1.json": _render("inspect", "sample", values) for each, values in parts}
    members["summaries.json"] = [_render("inspect", "summary", values) for _, values in parts]
    members["header.json"] = _render("inspect", "header", exported.values)
    with whole_file(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(name, json.dumps(value, ensure_ascii=False))
    return [path]


def write_every_eval_ever(exported: ExportedRun, folder: Path) -> list[Path]:
    """Write `data/DATASET/DEVELOPER/MODEL/UUID.json` and `UUID_samples.jsonl` below `folder`; raises `OSError`.

    The UUID is made of the run's digest, so a run that is exported again replaces its files.
    """
    identifier = uuid.UUID(bytes=hashlib.sha256(exported.run.folder.name.encode()).digest()[:16], version=4)
    model_id = exported.values["model_id"]
    place = Path("data", *map(file_name, (exported.values["dataset"], *model_id.split("/"))))
    path, samples = (folder / place / f"{identifier}{ending}" for ending in (".json", "_samples.jsonl"))
    path.parent.mkdir(parents=True, exist_ok=True)
    evaluation_id = "{task}/{}/{ended_s}".format(model_id.replace("/", "_"), **exported.values)
    values = {**exported.values, "evaluation_id": evaluation_id, "samples_path": (place / samples.name).as_posix()}
    _write_lines(samples, (_render("every-eval-ever", "sample", values | each.values) for each in exported.answers))
    values["samples_hash"] = hashlib.sha256(samples.read_bytes()).hexdigest()
    write_whole(path, json.dumps(_render("every-eval-ever", "evaluation", values), ensure_ascii=False, indent=2) + "\n")
    return [path, samples]


def _is_by_scores(answer: ExportedAnswer) -> bool:
    """Return whether the answer is the first option of the highest sum of log-likelihoods, as the harness chooses."""
    prediction = answer.prediction
    if prediction.option_scores is None or (prediction.score_unit, prediction.score_norm) != ("nats", "sum"):
        return False
    return prediction.answer == max(prediction.option_scores, key=prediction.option_scores.__getitem__)


def _generated(answer: ExportedAnswer) -> dict[str, Any]:
    return {
        "arguments": {"gen_args_0": {"arg_0": answer.values["printed"], "arg_1": {}}},
        "responses": [[answer.values["reply"]]],
        "filtered": [answer.values["answer"] or ("" if isinstance(answer.item, Task) else "[invalid]")],
    }


def _scored(answer: ExportedAnswer) -> dict[str, Any]:
    question, scores = answer.item, answer.prediction.option_scores or {}
    pairs = [[scores[number], False] for number in question.option_numbers]
    texts = [{"arg_0": question.asked, "arg_1": f" {text}"} for text in answer.values["options"]]
    return {
        "target": question.option_numbers.index(answer.gold.number),
        "arguments": {f"gen_args_{place}": text for place, text in enumerate(texts)},
        "responses": [[pair] for pair in pairs],
        "filtered": pairs,
    }


@cache
def _formats() -> Any:
    path = Path(__file__).with_name("formats.yaml")
    return parse_yaml(path.read_text(encoding="utf-8"), str(path))


def _render(harness: str, part: str, values: Mapping[str, Any]) -> Any:
    """Fill the template of a file's part."""

    def fill(template: Any) -> Any:
        if isinstance(template, str):
            return values[template[1:]] if template.startswith("$") else template
        if isinstance(template, list):
            return list(map(fill, template))
        if isinstance(template, dict):
            filled = {fill(name): fill(value) for name, value in template.items()}
            return {name: value for name, value in filled.items() if value is not None} or (None if filled else {})
        return template

    return fill(_formats()[harness][part])


def _write_lines(path: Path, records: Iterable[Any]) -> None:
    write_whole(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


_WRITERS: Mapping[str, Callable[[ExportedRun, Path], list[Path]]] = {
    "lm-eval": write_lm_eval,
    "inspect": write_inspect,
    "every-eval-ever": write_every_eval_ever,
}


def export_runs(runs: Sequence[StoredRun], to: str, folder: Path) -> list[Path]:
    """Write the runs' answers into `folder`. Return the files that were written.

    Raises `OSError`, and `SpecError` for a run without answers, or in words if the format holds numbered options alone.
    """
    exported = [ExportedRun.read(run) for run in runs]
    in_words = [run for run in exported if run.in_words]
    if in_words and to not in ("hub", "lm-eval"):
        raise SpecError(
            f"{in_words[0].run.folder.name} is answered in words, and the format of --to {to} has numbered options: "
            "choose --to lm-eval or hub, or leave it out"
        )
    if to == "hub":
        return write_hub(exported, folder)
    return [path for run in exported for path in _WRITERS[to](run, folder)]
