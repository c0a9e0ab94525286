"""A run as lm-evaluation-harness writes one: `samples_TASK_DATE.jsonl` with `results_DATE.json` beside it.

The layout is that of lm-eval 0.4.13 with `--log_samples`. A run whose options were scored by the sum of their
log-likelihoods is a task of multiple choice (`acc`), any other a task that generates (`exact_match`). The harness keeps
a prompt with each sample; here it is the printed question, and `config.metadata` says how it was really asked.
"""

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from medexam import __version__
from medexam.files import write_whole
from medexam_companions.harnesses.exports.answers import ExportedAnswer, ExportedRun

INVALID = "[invalid]"
"""What the harness's filters write for a reply without an answer."""


def write_lm_eval(exported: ExportedRun, folder: Path) -> list[Path]:
    """Write both files into a folder of the run's own inside `folder`; raises `OSError`."""
    by_scores = all(map(_is_by_scores, exported))
    measure = "acc" if by_scores else "exact_match"
    date = datetime.fromisoformat(exported.ended_at).strftime("%Y-%m-%dT%H-%M-%S.%f")
    samples = folder / exported.run.folder.name / f"samples_{exported.task}_{date}.jsonl"
    samples.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(sample, ensure_ascii=False) + "\n" for sample in _samples(exported, by_scores=by_scores))
    write_whole(samples, "".join(lines))
    results = samples.with_name(f"results_{date}.json")
    write_whole(results, json.dumps(_results(exported, measure), ensure_ascii=False, indent=2) + "\n")
    return [samples, results]


def _is_by_scores(answer: ExportedAnswer) -> bool:
    """Return whether the answer is the first option of the highest sum of log-likelihoods, as the harness chooses."""
    prediction = answer.prediction
    if prediction.option_scores is None or (prediction.score_unit, prediction.score_norm) != ("nats", "sum"):
        return False
    return prediction.answer == max(prediction.option_scores, key=prediction.option_scores.__getitem__)


def _samples(exported: ExportedRun, *, by_scores: bool) -> Iterator[dict[str, Any]]:
    for place, answer in enumerate(exported):
        question, exam = answer.question, answer.question.exam
        doc = {
            "key": question.key,
            "question": question.asked,
            "choices": answer.options,
            "exam": exam.name,
            "year": exam.year,
            "discipline": exam.discipline,
        }
        fields = _scored(answer) if by_scores else _generated(answer)
        yield {
            "doc_id": place,
            "doc": doc,
            **fields,
            "filter": "none",
            "doc_hash": _hash(json.dumps(doc, ensure_ascii=False)),
            "prompt_hash": _hash(question.printed),
            "target_hash": _hash(str(fields["target"])),
        }


def _generated(answer: ExportedAnswer) -> dict[str, Any]:
    return {
        "target": answer.target,
        "arguments": {"gen_args_0": {"arg_0": answer.question.printed, "arg_1": {}}},
        "resps": [[answer.said]],
        "filtered_resps": [answer.letter or INVALID],
        "metrics": ["exact_match"],
        "exact_match": float(answer.right),
    }


def _scored(answer: ExportedAnswer) -> dict[str, Any]:
    question, scores = answer.question, answer.prediction.option_scores or {}
    pairs = [[scores[option.number], False] for option in question.options]
    texts = [{"arg_0": question.asked, "arg_1": f" {option.text}"} for option in question.options]
    return {
        "target": question.option_numbers.index(answer.gold.number),
        "arguments": {f"gen_args_{place}": text for place, text in enumerate(texts)},
        "resps": [[pair] for pair in pairs],
        "filtered_resps": pairs,
        "metrics": ["acc"],
        "acc": float(answer.right),
    }


def _results(exported: ExportedRun, measure: str) -> dict[str, Any]:
    run, task, n = exported.run, exported.task, len(exported.answers)
    metric = {"metric": measure, "aggregation": "mean", "higher_is_better": True}
    config = {
        "task": task,
        "dataset_path": exported.cell.dataset.called,
        "dataset_name": exported.cell.dataset.language,
        "target_delimiter": " ",
        "metric_list": [metric],
        "output_type": "multiple_choice" if measure == "acc" else "generate_until",
        "repeats": 1,
        "metadata": {
            "version": run.record.dataset_version,
            "asked_by": f"medexam {__version__}",
            "program": exported.cell.program.model_dump(mode="json"),
            "spec_digest": run.record.spec_digest,
            "arguments": "the printed question; medexam's own prompt is that of its program",
        },
    }
    scores = {"alias": task, f"{measure},none": exported.accuracy, f"{measure}_stderr,none": exported.standard_error}
    seconds = datetime.fromisoformat(exported.ended_at).timestamp()
    return {
        "results": {task: scores},
        "group_subtasks": {task: []},
        "configs": {task: config},
        "versions": {task: run.record.dataset_version},
        "n-shot": {task: 0},
        "higher_is_better": {task: {measure: True}},
        "n-samples": {task: {"original": len(run.record.questions), "effective": n}},
        "config": {"model": "medexam", "model_args": {"pretrained": exported.model}, "gen_kwargs": {}},
        "git_hash": run.environment.get("git_commit"),
        "date": seconds,
        "lm_eval_version": f"medexam {__version__}",
        "task_hashes": {},
        "model_source": "medexam",
        "model_name": exported.model,
        "model_name_sanitized": exported.model.replace("/", "__"),
        "total_evaluation_time_seconds": str(run.environment.get("asked_s", 0.0)),
    }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
