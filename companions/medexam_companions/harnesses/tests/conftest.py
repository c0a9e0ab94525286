"""Imports of files on the packaged sample, and on data sets of the test's own."""

import json
from pathlib import Path

import pytest

from medexam.specs import DatasetSpec
from medexam_companions.harnesses import Importer


@pytest.fixture(scope="session")
def sample_importer(tmp_path_factory) -> Importer:
    """Imports on the packaged sample, of which the files of the folder `logs` hold parts."""
    return Importer(DatasetSpec(name="headqa_sample"), tmp_path_factory.mktemp("imported"))


@pytest.fixture
def take():
    """`take(importer, path)`: the runs that a file becomes, by measure."""

    def call(importer: Importer, path: Path, measure: str | None = None):
        return {one.record.cell.program.measure: one for one in importer.take(path, print, measure)}

    return call


@pytest.fixture
def own_importer(tmp_path):
    """`own_importer(rows)`: imports on questions of the test's own; any share of a file may match none."""

    def make(rows, most_unmatched: float = 1.0) -> Importer:
        path = tmp_path / "own.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        return Importer(DatasetSpec(kind="choice", path=path), tmp_path / "runs", most_unmatched=most_unmatched)

    return make


@pytest.fixture
def write_table(tmp_path):
    """`write_table("question,answer", "key,1")`: a CSV file."""

    def write(*lines: str) -> Path:
        path = tmp_path / "answers.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
