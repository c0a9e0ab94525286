"""A run as lm-evaluation-harness writes one: `samples_TASK_DATE.jsonl` with `results_DATE.json` beside it.

The layout is that of lm-eval 0.4.13 with `--log_samples`. A run whose options were scored by the sum of their
log-likelihoods is a task of multiple choice (`acc`), any other a task that generates (`exact_match`, or the measures of
answers in words). The harness keeps a prompt with each sample; here it is the printed question.
"""

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
    by_scores = not exported.in_words and all(map(_is_by_scores, exported))
    date = datetime.fromisoformat(exported.ended_at).strftime("%Y-%m-%dT%H-%M-%S.%f")
    samples = folder / exported.run.folder.name / f"samples_{exported.task}_{date}.jsonl"
    results = samples.with_name(f"results_{date}.json")
    samples.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(sample, ensure_ascii=False) + "\n" for sample in _samples(exported, by_scores=by_scores))
    write_whole(samples, "".join(lines))
    document = _results(exported, "acc" if by_scores else "exact_match")
    write_whole(results, json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    return [samples, results]


def _is_by_scores(answer: ExportedAnswer) -> bool:
    """Return whether the answer is the first option of the highest sum of log-likelihoods, as the harness chooses."""
    prediction = answer.prediction
    if prediction.option_scores is None or (prediction.score_unit, prediction.score_norm) != ("nats", "sum"):
        return False
    return prediction.answer == max(prediction.option_scores, key=prediction.option_scores.__getitem__)


def _samples(exported: ExportedRun, *, by_scores: bool) -> Iterator[dict[str, Any]]:
    for place, answer in enumerate(exported):
        item = answer.item
        if exported.in_words:
            names = ("key", "question", "context", "options", "given_answer", "given_reasoning", "group")
            fields: dict[str, Any] = {"doc": {name: value for name in names if (value := getattr(item, name))}}
            fields |= _generated(answer, item.question, answer.answer or "", answer.scores)
        else:
            doc = {"key": item.key, "question": item.asked, "choices": answer.options}
            fields = {"doc": {**doc, "exam": item.exam.name, "discipline": item.exam.discipline}}
            scores = {"exact_match": float(answer.right)}
            letter = answer.answer or INVALID
            fields |= _scored(answer) if by_scores else _generated(answer, item.printed, letter, scores)
        yield {"doc_id": place, **fields, "filter": "none"}


def _generated(answer: ExportedAnswer, prompt: str, filtered: str, scores: Any) -> dict[str, Any]:
    return {
        "target": answer.target,
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {}}},
        "resps": [[answer.reply]],
        "filtered_resps": [filtered],
        "metrics": list(scores),
        **scores,
    }


def _scored(answer: ExportedAnswer) -> dict[str, Any]:
    question, scores = answer.item, answer.prediction.option_scores or {}
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
    run, task = exported.run, exported.task
    scores = {f"{name},none": value for name, value in exported.means.items()}
    if not exported.in_words:
        scores = {f"{measure},none": exported.accuracy, f"{measure}_stderr,none": exported.standard_error}
    config = {
        "task": task,
        "dataset_path": exported.cell.dataset.called,
        "dataset_name": exported.cell.dataset.language,
        "target_delimiter": " ",
        "output_type": "multiple_choice" if measure == "acc" else "generate_until",
        "metadata": {
            "version": run.record.dataset_version,
            "program": exported.cell.program.model_dump(mode="json"),
            "spec_digest": run.record.spec_digest,
            "arguments": "the printed question; medexam's own prompt is that of its program",
        },
    }
    return {
        "results": {task: {"alias": task, **scores}},
        "configs": {task: config},
        "versions": {task: run.record.dataset_version},
        "n-shot": {task: 0},
        "higher_is_better": {task: {name.partition(",")[0]: True for name in scores if "_stderr" not in name}},
        "n-samples": {task: {"original": len(run.record.questions), "effective": len(exported.answers)}},
        "config": {"model": "medexam", "model_args": {"pretrained": exported.model}, "gen_kwargs": {}},
        "date": datetime.fromisoformat(exported.ended_at).timestamp(),
        "lm_eval_version": f"medexam {__version__}",
        "model_name": exported.model,
    }
