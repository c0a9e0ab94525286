"""A cell or a line that is longer than any text of a question is refused with the limit, before it is interpreted."""

import json
from pathlib import Path

import pytest

from medexam.datasets.own.tables import read_file
from medexam.errors import DatasetError
from medexam.experiments.imports.lines import read_lines
from medexam.experiments.imports.samples import ResultsError
from medexam.inputs import LONGEST_TEXT

LONG = "x" * (LONGEST_TEXT + 1)


@pytest.mark.parametrize("name", ["long.csv", "long.tsv", "long.jsonl"])
def test_a_table(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    mark = "\t" if name.endswith("tsv") else ","
    lines = json.dumps({"question": LONG}) if name.endswith("jsonl") else f"question{mark}answer\n{LONG}{mark}A\n"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(DatasetError, match="16,777,216 characters") as raised:
        read_file(path)
    assert len(str(raised.value)) < 300


def test_a_log_of_another_harness(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps({"question": "1", "answer": LONG}) + "\n", encoding="utf-8")
    with pytest.raises(ResultsError, match="line 1: it is longer than 16,777,216 characters"):
        next(read_lines(path))
