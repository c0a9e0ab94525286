"""Files of one's own and their questions, and the command line in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import medexam
from medexam.datasets import load_exam_set
from medexam.questions import ExamSet
from medexam.specs import DatasetSpec, validate
from table_cases import write_rows

__all__ = ["medexam"]


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., ExamSet]:
    """`load(rows, "mine.csv", columns={...})`: the questions of a file with these rows, or with this text."""

    def read(rows: Any, name: str = "mine.jsonl", **settings: Any) -> ExamSet:
        path = write_rows(tmp_path / name, rows)
        return load_exam_set(validate(DatasetSpec, {"kind": "choice", "path": path, **settings}))

    return read
