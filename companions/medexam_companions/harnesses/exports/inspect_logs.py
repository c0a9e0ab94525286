"""A run as Inspect writes one: an `.eval` log, a zip with a JSON file for each sample.

The layout is that of inspect-ai 0.3 (log format 2), packed by Deflate, which every reader knows. A reply is a message
of the assistant; the message before it is the printed question, and `eval.metadata` says how it was really asked.
"""

import json
import uuid
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

from medexam.files import whole_file
from medexam_companions.harnesses.exports.answers import ExportedAnswer, ExportedRun

SCORER = "choice"
_SUMMARY = ("id", "epoch", "input", "target", "scores", "metadata", "model_usage", "uuid")


def write_inspect(exported: ExportedRun, folder: Path) -> list[Path]:
    """Write the log into `folder`; raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    date = datetime.fromisoformat(exported.ended_at).strftime("%Y-%m-%dT%H-%M-%S%z")
    path = folder / f"{date.replace('+', '-')}_{exported.task}_{exported.run.record.spec_digest}.eval"
    header, samples = _header(exported), [_sample(exported, answer) for answer in exported]
    members = {
        "_journal/start.json": {name: header[name] for name in ("version", "eval", "plan")},
        **{f"samples/{sample['id']}_epoch_1.json": sample for sample in samples},
        "summaries.json": [{name: sample[name] for name in _SUMMARY} | {"completed": True} for sample in samples],
        "header.json": header,
    }
    with whole_file(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(name, json.dumps(value, ensure_ascii=False))
    return [path]


def _header(exported: ExportedRun) -> dict[str, Any]:
    run, record, n = exported.run, exported.run.record, len(exported.answers)
    metrics = {"accuracy": exported.accuracy, "stderr": exported.standard_error}
    dataset = {"name": exported.cell.dataset.called, "location": record.dataset_source, "samples": n}
    return {
        "version": 2,
        "status": "success" if run.complete else "cancelled",
        "eval": {
            **{name: _identifier(name, record.spec_digest) for name in ("eval_id", "run_id")},
            "created": exported.started_at,
            "task": exported.task,
            "task_id": record.spec_digest,
            "dataset": {**dataset, "sample_ids": [answer.item.key for answer in exported], "shuffled": False},
            "model": exported.model,
            "config": {"epochs": 1},
            "packages": {"medexam": exported.medexam_version},
            "metadata": {
                "program": exported.cell.program.model_dump(mode="json"),
                "spec_digest": record.spec_digest,
                "input": "the printed question; medexam's own prompt is that of its program",
            },
            "scorers": [{"name": SCORER, "metrics": [{"name": name} for name in metrics]}],
        },
        "plan": {"steps": [{"solver": f"medexam/{run.program}"}]},
        "results": {
            "total_samples": len(record.questions),
            "completed_samples": n,
            "scores": [
                {
                    "name": SCORER,
                    "scorer": SCORER,
                    "metrics": {name: {"name": name, "value": value} for name, value in metrics.items()},
                }
            ],
        },
        "stats": {"started_at": exported.started_at, "completed_at": exported.ended_at},
    }


def _sample(exported: ExportedRun, answer: ExportedAnswer) -> dict[str, Any]:
    question, prediction, usage = answer.item, answer.prediction, answer.token_usage
    reply = {"role": "assistant", "content": answer.reply, "source": "generate", "model": exported.model}
    value = "C" if answer.right else "I" if answer.answer else "N"
    output = {
        "model": exported.model,
        "choices": [
            {"message": reply, "stop_reason": "max_tokens" if prediction.finish_reason == "length" else "stop"}
        ],
        "completion": answer.reply,
    }
    return {
        "id": question.key,
        "epoch": 1,
        "input": question.asked,
        "choices": answer.options,
        "target": answer.target,
        "messages": [{"role": "user", "content": question.printed, "source": "input"}, reply],
        "output": output
        | ({"usage": usage} if usage else {})
        | ({} if prediction.latency_s is None else {"time": prediction.latency_s}),
        "scores": {SCORER: {"value": value, "answer": answer.answer or "", "explanation": answer.reply}},
        "metadata": {"exam": question.exam.name, "year": question.exam.year, "discipline": question.exam.discipline},
        "model_usage": {exported.model: usage} if usage else {},
        "uuid": _identifier(prediction.spec_digest, question.key),
    }


def _identifier(*parts: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(parts)))
