"""The columns of `predictions.parquet` for questions with numbered options."""

from typing import Any

import pyarrow as pa

from medexam.answer_key import Gold
from medexam.predictions import Prediction, Status
from medexam.questions import Question

COLUMNS = [
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
"""`right` is false for a question without an answer and null for one whose asking failed, so that its mean is the
accuracy. `number`, `gold` and `answer` are the printed numbers.
`option_scores` holds one score an option in the order of the exam, in `score_unit`; null where none were scored.
`passages` holds ids, most relevant first, and `passage_scores` the score of each in the retriever's own unit; both are
null where no passages were looked for. `passages_cut` counts the characters of them that were left out."""


def question_row(question: Question, gold: Gold, prediction: Prediction) -> dict[str, Any]:
    """The values of `COLUMNS` that are not those of every prediction."""
    scores = prediction.option_scores
    return {
        "exam": question.exam.name,
        "year": question.exam.year,
        "discipline": question.exam.discipline.value,
        "number": question.number,
        "language": question.language,
        "option_count": len(question.options),
        "has_image": question.image is not None,
        "gold": gold.number,
        "right": None if prediction.status is Status.FAILED else prediction.answer == gold.number,
        "option_scores": None if scores is None else [scores.get(number) for number in question.option_numbers],
    }
