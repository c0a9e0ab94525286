"""What `medexam data build` does: build an exam with a bar, and print its report."""

from collections.abc import Iterable
from pathlib import Path

import typer
from rich.table import Table

from medexam.cli import print_by_kind
from medexam.experiments import Bars, Terminal
from medexam.specs import BUILT, check_language
from medexam_companions.booklets.building import BuildRequest, build_exam
from medexam_companions.booklets.folder import parquet_path, report_path, review_path
from medexam_companions.booklets.report import BuildReport


def build_data_set(request: BuildRequest, out: Path, *, as_json: bool) -> None:
    """Build the data set of one exam, and print its report."""
    check_language(BUILT.name, request.language)
    with Bars() as bars:
        task = bars.add_task("Reading pages", total=None, note="")
        report = build_exam(request, out, lambda count, total: bars.update(task, completed=count, total=total))
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
        return
    _print_built(Terminal(highlight=False, markup=False, soft_wrap=True), report, out)


def _print_built(console: Terminal, report: BuildReport, out: Path) -> None:
    console.print(
        f"{report.name}: {report.discipline} {report.year}, {report.language}, {report.pages} pages",
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
    console.print(
        f"questions: {parquet_path(out, report)}\nreport:    {report_path(out, report)}\n"
        f"look at:   {review_path(out, report)}"
    )
    console.print(f"check it:  medexam data check {BUILT.name} --path {out} --language {report.language}")


def _count(report: BuildReport) -> list[tuple[str, int, str]]:
    announced = f"the cover announces {report.announced}" if report.announced else ""
    options = ", ".join(f"{count} with {number} options" for number, count in report.by_option_count.items())
    return [
        ("printed", report.printed, announced),
        ("not found", len(report.missing), _list(report.missing)),
        ("annulled", len(report.annulled), _list(report.annulled)),
        ("left out", len(report.left_out), _list(finding.number for finding in report.left_out)),
        ("built", report.built, options),
        ("with image", report.with_images, ""),
        ("corrected by hand", len(report.corrections), _list(applied.number for applied in report.corrections)),
        ("suspicious", len({finding.number for finding in report.suspicious}), ""),
    ]


def _list(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
