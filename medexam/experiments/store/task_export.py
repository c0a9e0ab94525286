"""`predictions.parquet` of a run whose questions are answered in words: every answer beside its question and scores."""

from collections.abc import Mapping

import pyarrow as pa

from medexam.experiments.store.parquet import write_rows
from medexam.experiments.store.run_folder import RunFolder
from medexam.metrics import TaskScores
from medexam.predictions import Prediction
from medexam.tasks import TaskSet

_COLUMNS = [
    ("question", pa.string()),
    ("group", pa.string()),
    ("language", pa.string()),
    ("gold", pa.list_(pa.string())),
    ("program", pa.string()),
    ("model", pa.string()),
    ("status", pa.string()),
    ("reason", pa.string()),
    ("text", pa.string()),
    ("start", pa.int32()),
    ("end", pa.int32()),
    ("alignment", pa.string()),
    ("reply", pa.string()),
    ("prompt_tokens", pa.int64()),
    ("completion_tokens", pa.int64()),
    ("latency_s", pa.float64()),
    ("finish_reason", pa.string()),
    ("failure_kind", pa.string()),
    ("failure_message", pa.string()),
]


def write_task_parquet(
    folder: RunFolder, task_set: TaskSet, predictions: Mapping[str, Prediction], scores: TaskScores
) -> None:
    """Write `predictions.parquet` whole or not at all; raises `RunFolderError` where that fails.

    One row for each task that has a prediction, in their order; behind the columns that all benchmarks share one for
    each measure that is a mean over tasks, null where the task has none.
    """
    schema = pa.schema([*_COLUMNS, *((f"score_{name}", pa.float64()) for name in scores.items)])
    asked = (task for task in task_set.questions if task.key in predictions)
    rows = (
        {
            "question": task.key,
            "group": task.group,
            "language": task.language,
            "gold": list(task_set.golds[task.key].answers),
            **_answer(predictions[task.key]),
            **{f"score_{name}": items.get(task.key) for name, items in scores.items.items()},
        }
        for task in asked
    )
    write_rows(folder, schema, rows)


def _answer(prediction: Prediction) -> dict[str, object]:
    failure, (start, end) = prediction.failure, prediction.span or (None, None)
    return {
        "program": prediction.program,
        "model": prediction.model,
        "status": prediction.status.value,
        "reason": prediction.reason.value if prediction.reason else None,
        "text": prediction.text,
        "start": start,
        "end": end,
        "alignment": prediction.alignment,
        "reply": prediction.reply,
        "prompt_tokens": prediction.prompt_tokens,
        "completion_tokens": prediction.completion_tokens,
        "latency_s": prediction.latency_s,
        "finish_reason": prediction.finish_reason,
        "failure_kind": failure.kind if failure else None,
        "failure_message": failure.message if failure else None,
    }
