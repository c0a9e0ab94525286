"""What `medexam data build` does: build an exam with a bar, and print its report."""

import time
from pathlib import Path
from typing import cast

import typer
from rich.table import Table

from medexam.cli import print_by_kind
from medexam.datasets import parse_discipline
from medexam.errors import DatasetError
from medexam.experiments import Terminal, open_bars
from medexam.questions import Discipline, Language
from medexam.specs import BUILT, check_language
from medexam_companions.booklets.building import BuildRequest, Built, build_exam
from medexam_companions.booklets.report import BuildReport


def build_data_set(
    booklet: Path,
    keys: tuple[Path, ...],
    name: str,
    out: Path,
    *,
    images: Path | None,
    without_images: bool,
    corrections: Path | None,
    formula_reader: str | None,
    language: str,
    year: int | None,
    discipline: str | None,
    as_json: bool,
) -> None:
    """Build the data set of one exam, and print its report."""
    check_language(BUILT.name, language)
    request = BuildRequest(
        booklet=booklet,
        keys=keys,
        name=name,
        language=cast("Language", language),
        images=images,
        without_images=without_images,
        corrections=corrections,
        formula_reader=formula_reader,
        year=year,
        discipline=_parse_discipline(discipline),
    )
    start = time.monotonic()
    with open_bars() as bars:
        task = bars.add_task("Reading pages", total=None, note="")
        exam = build_exam(request, out, lambda count, total: bars.update(task, completed=count, total=total))
    if as_json:
        typer.echo(exam.report.model_dump_json(indent=2))
        return
    _print_built(Terminal(highlight=False, markup=False, soft_wrap=True), exam, out, time.monotonic() - start)


def _parse_discipline(name: str | None) -> Discipline | None:
    discipline = None if name is None else parse_discipline(name)
    if name is not None and discipline is None:
        raise DatasetError(f"--discipline {name!r}: the disciplines are {', '.join(Discipline)}")
    return discipline


def _print_built(console: Terminal, exam: Built, out: Path, seconds: float) -> None:
    report = exam.report
    console.print(
        f"{report.name}: {report.discipline} {report.year}, {report.language}, {report.pages} pages in {seconds:.1f} s",
        style="bold",
    )
    table = Table("", "Questions", "", box=None, pad_edge=False)
    for label, count, note in _count(report):
        table.add_row(label, f"{count:,}", note)
    console.print(table)
    for word, style, findings in (("left out", "red", report.left_out), ("suspicious", "yellow", report.suspicious)):
        lines = [
            (finding.kind, f"{finding.key}{f', page {finding.page}' if finding.page else ''}: {finding.detail}")
            for finding in findings
        ]
        print_by_kind(console, word, style, lines, " in the report")
    console.print(f"questions: {exam.parquet}\nreport:    {exam.report_path}\nlook at:   {exam.review}")
    console.print(f"check it:  medexam data check {BUILT.name} --path {out} --language {report.language}")


def _count(report: BuildReport) -> list[tuple[str, int, str]]:
    announced = f"the cover announces {report.announced}" if report.announced else ""
    options = ", ".join(f"{count} with {number} options" for number, count in report.by_option_count.items())
    return [
        ("printed", report.printed, announced),
        ("not found", len(report.missing), _list(report.missing)),
        ("annulled", len(report.annulled), _list(report.annulled)),
        ("left out", len(report.left_out), _list(tuple(finding.number for finding in report.left_out))),
        ("built", report.built, options),
        ("with image", report.with_images, ""),
        (
            "corrected by hand",
            len(report.corrections),
            _list(tuple(correction.number for correction in report.corrections)),
        ),
        ("suspicious", len({finding.number for finding in report.suspicious}), ""),
    ]


def _list(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
