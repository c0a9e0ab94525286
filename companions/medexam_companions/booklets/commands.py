"""`medexam data build`: an exam booklet and its answer key to a data set that every strategy can be run on.

It parses, calls `medexam_companions.booklets` and prints; it knows nothing of PDFs.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from medexam.cli import JsonOption, settings_as_flags


@dataclass(frozen=True)
class BuildRequest:
    """What to build from what."""

    booklet: Annotated[Path, typer.Option(metavar="PDF", help="The exam as the Ministry publishes it.")]
    key: Annotated[Path, typer.Option(metavar="CSV|PDF", help="The official answers.")]
    name: Annotated[str, typer.Option(help="Such as Cuaderno_2020_0_B: year, version, discipline.")]
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the data set; it may hold other exams.")]
    images: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The exam's pictures, numbered in their names.")
    ] = None
    without_images: Annotated[
        bool, typer.Option("--without-images", help="Build questions without the pictures that they are linked to.")
    ] = False
    corrections: Annotated[
        Path | None, typer.Option(metavar="YAML", help="Corrections by question, each with a reason.")
    ] = None
    language: Annotated[str, typer.Option(help="The language that the booklet is in.")] = "es"


@settings_as_flags
def build(request: BuildRequest, as_json: JsonOption = False) -> None:
    """Turn an exam booklet and its answer key into a data set, with a report and a page to check it by.

    For example:
        medexam data build --booklet 2020.pdf --key 2020.csv --name Cuaderno_2020_0_B --out exams
    """
    from medexam.cli import print_json
    from medexam.experiments import Bars
    from medexam.specs import BUILT, check_language
    from medexam_companions.booklets.building import build_exam

    check_language(BUILT.name, request.language)
    with Bars() as bars:
        task = bars.add_task("Reading pages", total=None, note="")
        report = build_exam(request, lambda count, total: bars.update(task, completed=count, total=total))
    if as_json:
        print_json(report)
    else:
        _print_built(report, request)


def _print_built(report: dict[str, Any], request: BuildRequest) -> None:
    from rich.table import Table

    from medexam.cli import print_by_kind
    from medexam.experiments import Terminal
    from medexam.specs import BUILT
    from medexam_companions.booklets.folder import list_places

    console = Terminal(highlight=False, markup=False, soft_wrap=True)
    title = "{name}: {discipline} {year}, {language}, {pages} pages".format_map(report)
    console.print(title, style="bold")
    options = ", ".join(f"{count} with {number} options" for number, count in report["by_option_count"].items())
    rows = [
        ("printed", report["printed"], f"the cover announces {report['announced']}" if report["announced"] else ""),
        *(
            (heading, len(numbers), ", ".join(map(str, numbers)))
            for heading, numbers in (
                ("not found", report["missing"]),
                ("annulled", report["annulled"]),
                ("left out", [finding["number"] for finding in report["left_out"]]),
            )
        ),
        ("built", report["built"], options),
        ("with image", report["with_images"], ""),
        ("corrected by hand", len(report["corrections"]), ""),
        ("suspicious", len({finding["number"] for finding in report["suspicious"]}), ""),
    ]
    table = Table("", "Questions", "", box=None, pad_edge=False)
    for label, count, note in rows:
        table.add_row(label, f"{count:,}", note)
    console.print(table)
    for word, style, findings in (
        ("left out", "red", report["left_out"]),
        ("suspicious", "yellow", report["suspicious"]),
    ):
        pages = [f", page {finding['page']}" if finding["page"] else "" for finding in findings]
        lines = [
            (each["kind"], f"{each['key']}{page}: {each['detail']}") for each, page in zip(findings, pages, strict=True)
        ]
        print_by_kind(console, word, style, lines, " in the report")
    for label, path in zip(("questions", "report", "look at"), list_places(request.out, report), strict=True):
        console.print(f"{label + ':':11}{path}")
    console.print(f"check it:  medexam data check {BUILT.name} --path {request.out} --language {request.language}")
