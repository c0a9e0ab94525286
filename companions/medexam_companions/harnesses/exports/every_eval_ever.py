"""A run in the schema of Every Eval Ever, version 0.3.0, in the folders of its data store.

`data/DATASET/DEVELOPER/MODEL/UUID.json` says what was run and how it scored, and `UUID_samples.jsonl` beside it holds a
line for each question. The UUID is made of the run's digest, so a run that is exported again replaces its files.
"""

import hashlib
import json
import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from medexam.files import file_name, write_whole
from medexam_companions.harnesses.exports.answers import ExportedRun

SCHEMA = "0.3.0"
RESULT = "accuracy"
UNKNOWN = "unknown"


def write_every_eval_ever(exported: ExportedRun, folder: Path) -> list[Path]:
    """Write both files below `folder`; raises `OSError`."""
    identifier = uuid.UUID(bytes=hashlib.sha256(exported.run.folder.name.encode()).digest()[:16], version=4)
    developer, _, model = _model_id(exported).partition("/")
    place = Path("data", *map(file_name, (exported.cell.dataset.called, developer, model)))
    path, samples = (folder / place / f"{identifier}{ending}" for ending in (".json", "_samples.jsonl"))
    path.parent.mkdir(parents=True, exist_ok=True)
    evaluation = _evaluation(exported)
    records = _samples(exported, evaluation["evaluation_id"])
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_whole(samples, lines)
    evaluation["detailed_evaluation_results"] = {
        "format": "jsonl",
        "file_path": (place / samples.name).as_posix(),
        "hash_algorithm": "sha256",
        "checksum": hashlib.sha256(samples.read_bytes()).hexdigest(),
        "total_rows": len(exported.answers),
    }
    write_whole(path, json.dumps(evaluation, ensure_ascii=False, indent=2) + "\n")
    return [path, samples]


def _model_id(exported: ExportedRun) -> str:
    """`DEVELOPER/MODEL`; a model whose developer is not known is one of `unknown`."""
    model = exported.model.strip("/")
    return model if model.count("/") == 1 else f"{UNKNOWN}/{model.rpartition('/')[2]}"


def _evaluation(exported: ExportedRun) -> dict[str, Any]:
    run, cell = exported.run, exported.cell
    engine = (run.environment.get("engine") or {}).get("engine")
    ended_s = datetime.fromisoformat(exported.ended_at).timestamp()
    model = _model_id(exported)
    is_set = cell.program.asks_model and cell.model.temperature is not None
    details = {
        "program": run.program,
        "spec_digest": run.record.spec_digest,
        "language": cell.dataset.language,
        "dataset_version": run.record.dataset_version,
        "dataset_fingerprint": run.record.dataset_fingerprint,
    }
    result = {
        "evaluation_result_id": RESULT,
        "evaluation_name": exported.task,
        "source_data": {"dataset_name": cell.dataset.called, "source_type": "other"},
        "metric_config": {
            "evaluation_description": "Share of questions whose chosen option is right",
            "metric_id": RESULT,
            "metric_kind": RESULT,
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
        },
        "score_details": {
            "score": exported.accuracy,
            "uncertainty": {
                "standard_error": {"value": exported.standard_error, "method": "analytic"},
                "num_samples": len(exported.answers),
            },
        },
        "generation_config": {
            "generation_args": {"temperature": cell.model.temperature} if is_set else {},
            "additional_details": details,
        },
    }
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{exported.task}/{model.replace('/', '_')}/{ended_s}",
        "evaluation_timestamp": exported.ended_at,
        "retrieved_timestamp": str(ended_s),
        "source_metadata": {
            "source_name": "medexam",
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "third_party",
        },
        "eval_library": {"name": "medexam", "version": exported.medexam_version},
        "model_info": {
            "name": exported.model,
            "id": model,
            **({"inference_engine": {"name": str(engine)}} if engine else {}),
            "additional_details": {"deployment_type": UNKNOWN, "model_availability": UNKNOWN},
        },
        "evaluation_results": [result],
    }


def _samples(exported: ExportedRun, evaluation_id: str) -> Iterator[dict[str, Any]]:
    for answer in exported:
        question, prediction = answer.item, answer.prediction
        extracted = {"extracted_value": answer.answer or "", "extraction_method": f"medexam {prediction.program}"}
        yield {
            "schema_version": SCHEMA,
            "evaluation_id": evaluation_id,
            "model_id": _model_id(exported),
            "evaluation_name": exported.task,
            "evaluation_result_id": RESULT,
            "sample_id": question.key,
            "sample_hash": hashlib.sha256((question.asked + answer.target).encode()).hexdigest(),
            "interaction_type": "single_turn",
            "input": {"raw": question.asked, "reference": [answer.target], "choices": answer.options},
            "output": {"raw": [answer.reply]},
            "answer_attribution": [{"turn_idx": 0, "source": "output.raw", **extracted, "is_terminal": True}],
            "evaluation": {"score": float(answer.right), "is_correct": answer.right},
            **({"token_usage": answer.token_usage} if answer.token_usage else {}),
            **({} if prediction.latency_s is None else {"performance": {"latency_ms": prediction.latency_s * 1000}}),
            "metadata": {"exam": question.exam.name, "discipline": question.exam.discipline},
        }
