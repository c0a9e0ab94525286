"""Files of one's own and their questions, and the command line in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import medexam
from medexam.datasets import load_exam_set
from medexam.questions import ExamSet
from medexam.specs import DatasetSpec, validate
from table_cases import write_rows

__all__ = ["medexam"]


Proposed = tuple[dict[str, Any], str, list[str]]


@pytest.fixture
def init(medexam, tmp_path: Path) -> Callable[..., Proposed]:
    """`init("mine.csv", "--kind", ...)`: the data set of the spec that is written, the print, and the open lines."""

    def write(*words: object) -> Proposed:
        spec = tmp_path / "own.yaml"
        spec.unlink(missing_ok=True)
        code, out, err = medexam("init", *words, "--out", "own.yaml")
        if not spec.exists():
            return {}, err, ["refused"]
        text = spec.read_text(encoding="utf-8")
        opened = [line.strip() for line in text.splitlines() if "# decide: " in line]
        assert code == (3 if opened else 0), err
        return yaml.safe_load(text)["dataset"], out, opened

    return write


@pytest.fixture
def load_tree() -> Callable[..., ExamSet]:
    """`load_tree(tree, {"columns.context": None})`: the questions of a written spec, after the edits of a user."""

    def read(tree: dict[str, Any], edit: dict[str, Any] | None = None) -> ExamSet:
        columns, changed = dict(tree.get("columns") or {}), dict(tree)
        for key, value in (edit or {}).items():
            if key == "ignored":
                columns[key] = [*(columns.get(key) or []), *value]
            elif key.startswith("columns"):
                columns |= value if key == "columns" else {key.rpartition(".")[2]: value}
            else:
                changed[key] = value
        return load_exam_set(validate(DatasetSpec, {**changed, "columns": columns}))

    return read


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., ExamSet]:
    """`load(rows, "mine.csv", columns={...})`: the questions of a file with these rows, or with this text."""

    def read(rows: Any, name: str = "mine.jsonl", **settings: Any) -> ExamSet:
        path = write_rows(tmp_path / name, rows)
        return load_exam_set(validate(DatasetSpec, {"kind": "choice", "path": path, **settings}))

    return read
