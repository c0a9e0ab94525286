"""Answers to judge, real runs of the packaged sample, and raters who fill in their sheets."""

import csv
import io
from pathlib import Path

import pytest

from medexam.companions.audit.folder import AuditFolder
from medexam.datasets import load_exam_set
from medexam.metrics import AuditItem
from medexam.specs import DatasetSpec
from stored_runs import write_run


@pytest.fixture
def make_items():
    """`make_items({"one": 5, "two": 3})` -> items: so many questions of each run in each of two groups."""

    def make(runs, groups=("list", "short")):
        return [
            AuditItem(
                key=f"{group}/{number}",
                run=run,
                group=group,
                question=f"Question {number} of {group}?",
                reference="Heparin.",
                reply=f"=HYPERLINK({number})\nfrom {len(run)}",
                scores={"semantic": number / 10, "bleu": number % 3},
            )
            for run, count in runs.items()
            for group in groups
            for number in range(count)
        ]

    return make


@pytest.fixture
def audit_folder(tmp_path) -> AuditFolder:
    return AuditFolder(tmp_path / "audit")


@pytest.fixture
def fill():
    """`fill(sheet, {"code": {"correctness": "4"}})` writes cells into a sheet as a spreadsheet would; `to` renames."""

    def write(sheet: Path, cells, *, to: Path | None = None, delimiter: str = ",") -> Path:
        rows = list(csv.DictReader(io.StringIO(sheet.read_bytes().decode("utf-8-sig"), newline="")))
        stream = io.StringIO(newline="")
        writer = csv.DictWriter(stream, rows[0].keys(), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(row | cells.get(row["code"], {}) for row in rows)
        (to or sheet).write_bytes(stream.getvalue().encode("utf-8-sig"))
        return to or sheet

    return write


@pytest.fixture
def make_folder(tmp_path):
    """`make_folder("cot", "chain_of_thought", answer)` -> the folder of a run over eight questions of the sample."""
    exams = load_exam_set(DatasetSpec(limit=8))

    def make(name, kind, answer):
        return write_run(tmp_path / "runs" / name, exams, {"kind": kind}, answer, dataset={"limit": 8})

    return make
