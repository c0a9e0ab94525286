"""Tables of cases in `tests/cases/`, one a line with the value that is right; and files with the rows of a case."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

FOLDER = Path(__file__).parent / "cases"


def read_cases(name: str, folder: Path = FOLDER) -> list[Any]:
    """The cases of a file, each a parameter of a test."""
    cases = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    return [pytest.param(case, id=case.get("name", str(place))) for place, case in enumerate(cases, start=1)]


def read_table(name: str) -> tuple[list[str], list[list[Any]]]:
    """The names and the rows of a file of cases, as `parametrize` takes them."""
    cases = [case.values[0] for case in read_cases(name)]
    return list(cases[0]), [list(case.values()) for case in cases]


def write_rows(path: Path, rows: Any) -> Path:
    """Write rows in the form that the path's ending says, or a text as it is; gives the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(rows, str):
        path.write_text(rows, encoding="utf-8", newline="")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return path


def write_squad(path: Path, rows: list[tuple[str, str, str, str]]) -> Path:
    """SQuAD-form JSON Lines of (id, context, question, answer), each answer where the context holds it."""
    lines = [
        json.dumps(
            {
                "id": key,
                "context": context,
                "question": question,
                "answers": {"text": [answer], "answer_start": [context.find(answer)]},
            }
        )
        for key, context, question, answer in rows
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value
