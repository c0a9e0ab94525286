"""`predictions.parquet`: every prediction beside its question's exam and gold, for pandas, DuckDB or a notebook.

It is made from the questions, the key and `predictions.jsonl`; the answers themselves stay in that file.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from medexam.answer_key import AnswerKey
from medexam.errors import RunFolderError
from medexam.experiments.store.run_folder import PARQUET, RunFolder
from medexam.files import whole_file
from medexam.predictions import Prediction, Status
from medexam.questions import Question

SCHEMA = pa.schema(
    [
        ("question", pa.string()),
        ("exam", pa.string()),
        ("year", pa.int32()),
        ("discipline", pa.string()),
        ("number", pa.int32()),
        ("language", pa.string()),
        ("option_count", pa.int32()),
        ("has_image", pa.bool_()),
        ("gold", pa.int32()),
        ("program", pa.string()),
        ("model", pa.string()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("answer", pa.int32()),
        ("right", pa.bool_()),
        ("reply", pa.string()),
        ("rationale", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("latency_s", pa.float64()),
        ("finish_reason", pa.string()),
        ("option_scores", pa.list_(pa.float64())),
        ("score_unit", pa.string()),
        ("score_norm", pa.string()),
        ("label_mass", pa.float64()),
        ("tied", pa.int32()),
        ("read_by", pa.string()),
        ("read_why", pa.string()),
        ("passages", pa.list_(pa.string())),
        ("passage_scores", pa.list_(pa.float64())),
        ("passages_cut", pa.int64()),
        ("failure_kind", pa.string()),
        ("failure_message", pa.string()),
    ]
)
"""`right` is false for a question without an answer and null for one whose asking failed, so that its mean is the
accuracy. `number`, `gold` and `answer` are the printed numbers.
`option_scores` holds one score an option in the order of the exam, in `score_unit`; null where none were scored.
`passages` holds ids, most relevant first, and `passage_scores` the score of each in the retriever's own unit; both are
null where no passages were looked for. `passages_cut` counts the characters of them that were left out."""
ROW_GROUP = 2048
"""Rows that are held in memory and written at once."""


def write_parquet(
    folder: RunFolder, questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> None:
    """Write `predictions.parquet` whole or not at all; raises `RunFolderError` where that fails.

    One row for each of `questions` that has a prediction, in their order, with the columns of `SCHEMA`.
    """
    asked = (question for question in questions if question.key in predictions)
    write_rows(
        folder, SCHEMA, (_row(question, key[question.key].number, predictions[question.key]) for question in asked)
    )


def write_rows(folder: RunFolder, schema: pa.Schema, rows: Iterator[dict[str, object]]) -> None:
    """Write `predictions.parquet` of these rows whole or not at all; raises `RunFolderError` where that fails."""
    target = folder.path / PARQUET
    try:
        with whole_file(target, private=True) as draft, pq.ParquetWriter(draft, schema, compression="zstd") as writer:
            while batch := list(islice(rows, ROW_GROUP)):
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
    except OSError as error:
        raise RunFolderError(f"cannot write {target}: {error}") from None


def _row(question: Question, gold: int, prediction: Prediction) -> dict[str, object]:
    failure, scores, passages = prediction.failure, prediction.option_scores, prediction.passages
    return {
        "question": question.key,
        "exam": question.exam.name,
        "year": question.exam.year,
        "discipline": question.exam.discipline.value,
        "number": question.number,
        "language": question.language,
        "option_count": len(question.options),
        "has_image": question.image is not None,
        "gold": gold,
        "program": prediction.program,
        "model": prediction.model,
        "status": prediction.status.value,
        "reason": prediction.reason.value if prediction.reason else None,
        "answer": prediction.answer,
        "right": None if prediction.status is Status.FAILED else prediction.answer == gold,
        "reply": prediction.reply,
        "rationale": prediction.rationale,
        "prompt_tokens": prediction.prompt_tokens,
        "completion_tokens": prediction.completion_tokens,
        "latency_s": prediction.latency_s,
        "finish_reason": prediction.finish_reason,
        "option_scores": None if scores is None else [scores.get(number) for number in question.option_numbers],
        "score_unit": prediction.score_unit,
        "score_norm": prediction.score_norm,
        "label_mass": prediction.label_mass,
        "tied": prediction.tied,
        "read_by": prediction.read_by,
        "read_why": prediction.read_why,
        "passages": None if passages is None else [passage.id for passage in passages],
        "passage_scores": None if passages is None else [passage.score for passage in passages],
        "passages_cut": prediction.passages_cut,
        "failure_kind": failure.kind if failure else None,
        "failure_message": failure.message if failure else None,
    }
