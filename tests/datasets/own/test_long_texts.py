"""A cell or a line that is longer than any text of a question is refused with the limit, before it is interpreted."""

import json
import os
from pathlib import Path

import pytest

from medexam.companions.harnesses.imports.lines import read_lines
from medexam.companions.harnesses.imports.samples import ResultsError
from medexam.datasets import read_file
from medexam.errors import DatasetError, RunFolderError, SpecError
from medexam.experiments.store import log_lines
from medexam.experiments.store.log_lines import cut_torn_line, read_whole_lines
from medexam.experiments.store.trust import is_own
from medexam.inputs import LARGEST_RECORD, LONGEST_TEXT, UnreadableError, read_record
from medexam.specs import parse_yaml

LONG = "x" * (LONGEST_TEXT + 1)


@pytest.mark.parametrize("name", ["long.csv", "long.tsv", "long.jsonl", "long.json"])
def test_a_table(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    mark = "\t" if name.endswith("tsv") else ","
    row = json.dumps({"question": [{"text": LONG}]})
    table = f"question{mark}answer\n{LONG}{mark}A\n"
    lines = {"long.json": f"[{row}]", "long.jsonl": row}.get(name, table)
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(DatasetError, match="16,777,216 characters") as raised:
        read_file(path)
    assert len(str(raised.value)) < 300


def test_a_log_of_another_harness(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps({"question": "1", "answer": LONG}) + "\n", encoding="utf-8")
    with pytest.raises(ResultsError, match="line 1: it is longer than 16,777,216 characters"):
        next(read_lines(path))


def test_a_text_of_yaml() -> None:
    with pytest.raises(SpecError, match="spec: is longer than 16,777,216 characters"):
        parse_yaml(f"name: {LONG}", "spec")


def test_a_line_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "LONGEST_LINE", 5_000)
    path = tmp_path / "predictions.jsonl"
    path.write_bytes(b"a\n" + b"x" * 4_998 + b"\n" + b"torn" * 1_000)
    assert [len(line) for line in read_whole_lines(path)] == [2, 4_999]
    cut_torn_line(path)
    assert path.stat().st_size == 5_001
    path.write_bytes(b"a\n" + b"x" * 20_000)
    for read in (lambda: list(read_whole_lines(path)), lambda: cut_torn_line(path)):
        with pytest.raises(RunFolderError, match="is longer than 134,217,728 bytes"):
            read()


def test_a_record_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.touch()
    os.truncate(path, LARGEST_RECORD + 1)
    with pytest.raises(UnreadableError, match="is larger than 256 MiB"):
        read_record(path)
    assert not is_own(tmp_path)
