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
_STOPS = {"length": "max_tokens"}
"""An engine's finish reason -> Inspect's word, if it is another than `stop`."""


def write_inspect(exported: ExportedRun, folder: Path) -> list[Path]:
    """Write the log into `folder`; raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    date = datetime.fromisoformat(exported.ended_at).strftime("%Y-%m-%dT%H-%M-%S%z")
    path = folder / f"{date.replace('+', '-')}_{exported.task}_{exported.run.record.spec_digest}.eval"
    log = _header(exported)
    summaries = []
    with whole_file(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:

        def write(name: str, value: Any) -> None:
            archive.writestr(name, json.dumps(value, ensure_ascii=False))

        write("_journal/start.json", {name: log[name] for name in ("version", "eval", "plan")})
        for answer in exported:
            sample = _sample(exported, answer)
            write(f"samples/{sample['id']}_epoch_1.json", sample)
            summary_fields = ("id", "epoch", "input", "choices", "target", "scores", "metadata", "model_usage", "uuid")
            summaries.append({name: sample[name] for name in summary_fields} | {"completed": True, "message_count": 2})
        write("summaries.json", summaries)
        write("header.json", log)
    return [path]


def _header(exported: ExportedRun) -> dict[str, Any]:
    run, record = exported.run, exported.run.record
    identifiers = {
        name: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name}/{record.spec_digest}")) for name in ("eval_id", "run_id")
    }
    accuracy = {"accuracy": exported.accuracy, "stderr": exported.standard_error}
    n = len(exported.answers)
    return {
        "version": 2,
        "status": "success" if run.complete else "cancelled",
        "eval": {
            **identifiers,
            "created": exported.started_at,
            "task": exported.task,
            "task_id": record.spec_digest,
            "task_version": 0,
            "dataset": {
                "name": exported.cell.dataset.called,
                "location": record.dataset_source,
                "samples": n,
                "sample_ids": [answer.question.key for answer in exported],
                "shuffled": False,
            },
            "model": exported.model,
            "config": {"epochs": 1},
            "packages": {"medexam": exported.medexam_version},
            "metadata": {
                "asked_by": "medexam",
                "program": exported.cell.program.model_dump(mode="json"),
                "spec_digest": record.spec_digest,
                "input": "the printed question; medexam's own prompt is that of its program",
            },
            "scorers": [
                {"name": SCORER, "options": {}, "metrics": [{"name": name, "options": {}} for name in accuracy]}
            ],
        },
        "plan": {"name": "plan", "steps": [{"solver": f"medexam/{run.program}", "params": {}}], "config": {}},
        "results": {
            "total_samples": len(record.questions),
            "completed_samples": n,
            "scores": [
                {
                    "name": SCORER,
                    "scorer": SCORER,
                    "scored_samples": n,
                    "params": {},
                    "metrics": {name: {"name": name, "value": value, "params": {}} for name, value in accuracy.items()},
                }
            ],
        },
        "stats": {"started_at": exported.started_at, "completed_at": exported.ended_at, "model_usage": {}},
    }


def _sample(exported: ExportedRun, answer: ExportedAnswer) -> dict[str, Any]:
    question, prediction = answer.question, answer.prediction
    usage = answer.token_usage
    reply = {"role": "assistant", "content": answer.said, "source": "generate", "model": exported.model}
    score = {"value": "C" if answer.right else "I" if answer.letter else "N", "answer": answer.letter or ""}
    return {
        "id": question.key,
        "epoch": 1,
        "input": question.asked,
        "choices": answer.options,
        "target": answer.target,
        "messages": [{"role": "user", "content": question.printed, "source": "input"}, reply],
        "output": {
            "model": exported.model,
            "choices": [{"message": reply, "stop_reason": _STOPS.get(prediction.finish_reason or "", "stop")}],
            "completion": answer.said,
            **({"usage": usage} if usage else {}),
            **({"time": prediction.latency_s} if prediction.latency_s is not None else {}),
        },
        "scores": {SCORER: {**score, "explanation": answer.said}},
        "metadata": {
            "exam": question.exam.name,
            "year": question.exam.year,
            "discipline": question.exam.discipline,
            "reason": prediction.reason.value if prediction.reason else None,
        },
        "store": {},
        "events": [],
        "model_usage": {exported.model: usage} if usage else {},
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{prediction.spec_digest}/{question.key}")),
        "attachments": {},
    }
