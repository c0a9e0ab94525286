"""`medexam report --layout`: stored runs in the tables of a paper."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medexam.cli.views.output import print_json, write_markdown
from medexam.cli.views.overviews import print_ranking_notes

if TYPE_CHECKING:
    from rich.console import RenderableType

    from medexam.experiments.store.stored_run import ExamRun


def print_layout(stored: "Sequence[ExamRun]", layout: str, markdown: Path | None, *, as_json: bool) -> None:
    """Print the tables of the paper that `layout` names, as JSON if asked, and write them as Markdown."""
    from medexam.experiments.compare.ranking import ranking_notes

    document, report, build = _headqa_v2(stored) if layout == "paper" else _headqa_v1(stored)
    if markdown is not None:
        write_markdown(report(ranking_notes(stored)), markdown)
    if as_json:
        print_json(document)
        return
    from rich.console import Console

    console = Console()
    for table in build(console.width):
        console.print(table)
    print_ranking_notes(console, stored)


_Forms = tuple[Any, Callable[[Sequence[str]], str], "Callable[[int], Iterable[RenderableType]]"]
"""The tables as JSON, as Markdown under notes, and on a terminal of a width."""


def _headqa_v2(stored: "Sequence[ExamRun]") -> _Forms:
    from medexam.experiments.report.papers.headqa_v2 import (
        build_paper_tables,
        paper_document,
        paper_tables,
        render_paper_report,
    )

    tables = paper_tables(stored)
    return paper_document(tables), partial(render_paper_report, tables), partial(build_paper_tables, tables)


def _headqa_v1(stored: "Sequence[ExamRun]") -> _Forms:
    """The tables of the HEAD-QA v1 paper, which are as wide as they are."""
    from medexam.experiments.report.papers.headqa_v1 import (
        build_headqa_v1_tables,
        headqa_v1_document,
        headqa_v1_tables,
        render_headqa_v1_report,
    )

    tables = headqa_v1_tables(stored)
    return (
        headqa_v1_document(tables),
        partial(render_headqa_v1_report, tables),
        lambda _: build_headqa_v1_tables(tables),
    )
