"""A translated exam as a Parquet file in HEAD-QA v2's eight fields, which the reader of `headqa_v2` takes.

Pictures go along where the source holds their bytes; elsewhere their names do. It writes what it is given.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.answer_key import AnswerKey
from medexam.datasets.headqa_v2 import FIELDS, SOURCE_METADATA
from medexam.datasets.translate.layout import QuestionText
from medexam.errors import DatasetError
from medexam.files import whole_file
from medexam.questions import Discipline, Question

_CATEGORIES = {Discipline.NURSING: "nursery"}
"""The hub's spelling where it is not ours."""

Pictures = Mapping[tuple[str, int], Mapping[str, Any]]
"""Booklet and printed number -> the hub's `{path, bytes}` of the picture."""


def write_translation(
    path: Path,
    questions: Sequence[Question],
    key: AnswerKey,
    texts: Mapping[str, QuestionText],
    *,
    origin: str,
    pictures: Pictures | None = None,
) -> int:
    """Write those of `questions` that `texts` has words for, with these words, and tell how many they are.

    `origin` says in the file what it was made from. The file is written whole or not at all. Raises `DatasetError`
    where it cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    records = [_record(one, key[one.key].number, texts[one.key], pictures) for one in questions if one.key in texts]
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())]) if pictures else pa.string()
    answers = pa.list_(pa.struct([("aid", pa.int64()), ("atext", pa.string())]))
    types = dict.fromkeys(FIELDS, pa.string()) | dict.fromkeys(("year", "qid", "ra"), pa.int64())
    types |= {"image": picture, "answers": answers}
    schema = pa.schema(list(types.items()), metadata={SOURCE_METADATA: origin.encode()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as draft:
            pq.write_table(pa.Table.from_pylist(records, schema=schema), draft)
    except OSError as error:
        raise DatasetError(f"cannot write {path} ({error}): choose another folder with --out") from None
    return len(records)


def read_pictures(paths: Sequence[Path]) -> Pictures | None:
    """The pictures that the Parquet files at `paths` hold with their bytes; None where they hold none.

    Raises `DatasetError` for a file that is not whole.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[tuple[str, int], Mapping[str, Any]] = {}
    for path in paths:
        if path.suffix != ".parquet":
            continue
        try:
            if not pa.types.is_struct(pq.read_schema(path).field("image").type):
                continue
            rows = pq.read_table(path, columns=["name", "qid", "image"]).to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise DatasetError(f"{path}: cannot read its pictures ({error}): it may be truncated") from None
        found |= {(row["name"], int(row["qid"])): row["image"] for row in rows if row["image"] is not None}
    return found or None


def _record(question: Question, gold: int, text: QuestionText, pictures: Pictures | None) -> dict[str, Any]:
    exam = question.exam
    image: Any = question.image
    if pictures is not None:
        named = None if question.image is None else {"bytes": None, "path": question.image}
        image = pictures.get((exam.name, question.number), named)
    return {
        "name": exam.name,
        "year": exam.year,
        "category": _CATEGORIES.get(exam.discipline, exam.discipline.value),
        "qid": question.number,
        "qtext": text.stem,
        "ra": gold,
        "image": image,
        "answers": [{"aid": number, "atext": words} for number, words in text.options],
    }
