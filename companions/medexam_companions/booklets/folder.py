"""The folder that built exams lie in: one Parquet file for each exam and language, reports, reviews and a data card.

Each file is written beside its place and moved there whole, the questions last.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from medexam.datasets import render_record, write_exam_table
from medexam.errors import DatasetError
from medexam.files import UnreadableError, read_json, whole_file
from medexam.questions import Exam
from medexam.specs import BUILT
from medexam_companions.booklets.drafts import Draft

CARD = Path(__file__).with_name("card.md")


def list_places(out: Path, report: Mapping[str, Any]) -> tuple[Path, Path, Path]:
    """List where an exam's questions, its report and its page for the human lie.

    `dataset.path` may name the questions or the folder.
    """
    name = report["name"]
    return out / report["language"] / f"{name}.parquet", out / f"{name}.report.json", out / f"{name}.review.html"


def read_reports(out: Path) -> dict[str, dict[str, Any]]:
    """Read the reports of the exams in a folder, by name; raise `DatasetError` when one is damaged."""
    reports = {}
    for path in sorted(out.glob("*.report.json")):
        try:
            report = read_json(path)
            reports[report["name"]] = report
        except (OSError, UnreadableError, KeyError, TypeError) as error:
            raise DatasetError(
                f"{path}: is no build report ({error}): remove it, or build into another folder"
            ) from None
    return reports


def render_card(reports: Sequence[Mapping[str, Any]]) -> str:
    """Render the data card: a README with the hub's front matter, and what the Ministry asks of those who reuse its
    exams.
    """
    environment = jinja2.Environment(autoescape=False, trim_blocks=True, keep_trailing_newline=True)  # noqa: S701
    template = environment.from_string(CARD.read_text(encoding="utf-8"))
    languages = sorted({report["language"] for report in reports})
    return template.render(reports=reports, languages=languages, terms=BUILT.terms, form=BUILT)


def write_build(out: Path, report: Mapping[str, Any], review: str, drafts: Sequence[Draft]) -> None:
    """Put one exam into `out`, instead of an earlier build of it; `drafts` are its questions.

    Raises `OSError`, and `DatasetError` if the folder holds the same exam's questions from elsewhere.
    """
    _check_ours(out, report)
    reports = read_reports(out) | {report["name"]: report}
    exam = Exam(name=report["name"], year=report["year"], discipline=report["discipline"])
    records = [
        render_record(exam, draft.number, draft.stem, draft.options.items(), draft.gold, draft.picture)
        for draft in drafts
    ]
    source = f"{report['booklet']} (SHA-256 {report['booklet_sha256'][:12]})"
    table, account, page = list_places(out, report)
    table.parent.mkdir(parents=True, exist_ok=True)
    # They take their places in turn, the last named first: with a report the folder counts as one of built exams, and
    # if questions are there, so are their report and review.
    with (
        whole_file(table) as questions,
        whole_file(out / "README.md") as card,
        whole_file(page) as review_file,
        whole_file(account) as report_file,
    ):
        write_exam_table(questions, records, source, with_pictures=True)
        card.write_text(render_card([reports[name] for name in sorted(reports)]), encoding="utf-8")
        report_file.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        review_file.write_text(review, encoding="utf-8")


def _check_ours(out: Path, report: Mapping[str, Any]) -> None:
    if out.exists() and not out.is_dir():
        raise DatasetError(f"{out}: is a file: give --out a folder")
    # Hidden files are drafts that a killed build left.
    below = (path.relative_to(out).parts for path in out.rglob("*") if path.is_file())
    if all(any(part.startswith(".") for part in parts) for parts in below):
        return
    if not any(out.glob("*.report.json")):
        raise DatasetError(f"{out}: holds files that are not built exams: give --out a new or empty folder")
    table, account, _ = list_places(out, report)
    if table.exists() and not account.exists():
        raise DatasetError(f"{table}: was not written by a build: move it, or give --out another folder")
