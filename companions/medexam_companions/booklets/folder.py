"""The folder that built exams lie in: one Parquet file for each exam and language, reports, reviews and a data card.

Each file is written beside its place and moved there whole, the questions last.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import pyarrow.parquet as pq
from pydantic import ValidationError

from medexam.datasets import FIELDS, SOURCE_METADATA, WHOLE, render_record
from medexam.errors import DatasetError
from medexam.files import first_line, whole_file
from medexam.questions import Exam
from medexam.specs import BUILT
from medexam_companions.booklets.drafts import Draft
from medexam_companions.booklets.exam_names import ExamName
from medexam_companions.booklets.pages.opening import INSTALL
from medexam_companions.booklets.report import BuildReport

CARD = Path(__file__).with_name("card.md")


def parquet_path(out: Path, report: BuildReport) -> Path:
    """Return where an exam's questions lie; `dataset.path` may name it or the folder."""
    return out / report.language / f"{report.name}.parquet"


def report_path(out: Path, report: BuildReport) -> Path:
    """Return where an exam's build report lies."""
    return out / f"{report.name}.report.json"


def review_path(out: Path, report: BuildReport) -> Path:
    """Return where an exam's page for the human lies."""
    return out / f"{report.name}.review.html"


def read_reports(out: Path) -> tuple[BuildReport, ...]:
    """Read the reports of the exams in a folder, by name; raise `DatasetError` when one is damaged."""
    reports = []
    for path in sorted(out.glob("*.report.json")):
        try:
            reports.append(BuildReport.model_validate_json(path.read_text(encoding="utf-8")))
        except (OSError, ValidationError) as error:
            raise DatasetError(
                f"{path}: is no build report ({first_line(error)}): remove it, or build into another folder"
            ) from None
    return tuple(reports)


def render_card(reports: Sequence[BuildReport]) -> str:
    """Render the data card: a README with the hub's front matter, and what the Ministry asks of those who reuse its
    exams.
    """
    environment = jinja2.Environment(autoescape=False, trim_blocks=True, keep_trailing_newline=True)  # noqa: S701
    template = environment.from_string(CARD.read_text(encoding="utf-8"))
    languages = sorted({report.language for report in reports})
    return template.render(reports=reports, languages=languages, terms=BUILT.terms, form=BUILT)


def write_build(out: Path, report: BuildReport, review: str, write_questions: Callable[[Path], None]) -> None:
    """Put one exam into `out`, instead of an earlier build of it.

    Raises `DatasetError` if the folder cannot be written or holds the same exam's questions from elsewhere.
    """
    _check_ours(out, report)
    others = [other for other in read_reports(out) if other.name != report.name]
    home = parquet_path(out, report).parent
    try:
        home.mkdir(parents=True, exist_ok=True)
        # They take their places in turn, the last named first: with a report the folder counts as one of built exams,
        # and if questions are there, so are their report and review.
        with (
            whole_file(parquet_path(out, report)) as questions,
            whole_file(out / "README.md") as card,
            whole_file(review_path(out, report)) as page,
            whole_file(report_path(out, report)) as report_file,
        ):
            write_questions(questions)
            card.write_text(render_card(sorted([*others, report], key=lambda entry: entry.name)), encoding="utf-8")
            report_file.write_text(report.model_dump_json(indent=2) + "\n", encoding="utf-8")
            page.write_text(review, encoding="utf-8")
    except OSError as error:
        raise DatasetError(
            f"cannot write {out} ({error.strerror or error}): give --out a folder that can be written"
        ) from None


def _check_ours(out: Path, report: BuildReport) -> None:
    if out.exists() and not out.is_dir():
        raise DatasetError(f"{out}: is a file: give --out a folder")
    if not out.is_dir() or not _holds_files(out):
        return
    if not any(out.glob("*.report.json")):
        raise DatasetError(f"{out}: holds files that are not built exams: give --out a new or empty folder")
    if parquet_path(out, report).exists() and not report_path(out, report).exists():
        raise DatasetError(
            f"{parquet_path(out, report)}: was not written by a build: move it, or give --out another folder"
        )


def _holds_files(folder: Path) -> bool:
    """Return whether files lie below the folder. Hidden ones are drafts that a killed build left, and do not count."""
    below = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return any(not any(part.startswith(".") for part in path.parts) for path in below)


def write_questions(path: Path, drafts: Sequence[Draft], exam: ExamName, source: str) -> None:
    """Write the questions at `path`; `source` says in the file's metadata what they were built from.

    Raises `DatasetError` without the `datasets` library.
    """
    try:
        import datasets
    except ImportError:
        raise DatasetError(f"writing a data set needs the `datasets` library: {INSTALL}") from None

    text, integer = datasets.Value("string"), datasets.Value("int64")
    kinds = dict.fromkeys(FIELDS, text) | dict.fromkeys(WHOLE, integer)
    features = datasets.Features({**kinds, "image": datasets.Image(), "answers": [{"aid": integer, "atext": text}]})
    question_exam = Exam(name=exam.name, year=exam.year, discipline=exam.discipline)
    records = [
        render_record(question_exam, draft.number, draft.stem, draft.options.items(), draft.gold, _image(draft))
        for draft in drafts
    ]
    columns = {field: [record[field] for record in records] for field in FIELDS}
    table = datasets.Dataset.from_dict(columns, features=features).data.table
    metadata = {**(table.schema.metadata or {}), SOURCE_METADATA: source.encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)


def _image(draft: Draft) -> dict[str, Any] | None:
    return None if draft.picture is None else {"path": draft.picture.name, "bytes": draft.picture.content}
