"""`medexam report` of runs whose questions have numbered options: our tables, or those of a paper."""

import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medexam.cli.report_options import Layout, ReportOptions
from medexam.cli.views.current_runs import read_current
from medexam.cli.views.overviews import print_models, print_ranking_notes
from medexam.cli.views.pending import print_pending
from medexam.errors import SpecError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from medexam.experiments.compare.baselines import Contrast
    from medexam.experiments.report.papers.human_baseline import AgainstPeople
    from medexam.experiments.store.run_folder import RunFolder
    from medexam.experiments.store.stored_run import ExamRun


def report_exams(folders: "list[RunFolder]", options: ReportOptions) -> None:
    """Print the runs as they are now and write what is asked for; raises `SpecError` for what only tasks have."""
    if options.weights:
        raise SpecError("--weight ranks runs that answer in words; these answer exams: leave it out")
    if options.layout is not None and options.html is not None:
        raise SpecError("--html writes our own tables, and --layout prints a paper's: give one of them at a time")
    from medexam.experiments.compare.baselines import contrast_runs
    from medexam.experiments.report.papers.human_baseline import against_people
    from medexam.experiments.store.stored_run import is_exam_run

    as_json, markdown = options.as_json, options.markdown
    stored = [run for run in read_current(folders) if is_exam_run(run)]
    if options.html is not None:
        _write_page(stored, options.html)
    if options.plots is not None:
        _write_plots(stored, options.plots)
    if options.layout is not None:
        show = _report_paper if options.layout is Layout.PAPER else _report_headqa_v1
        show(stored, markdown, as_json=as_json)
        return
    # A run whose data set is not at hand has no questions to set against another's.
    whole = [run for run in stored if run.note is None]
    contrasts = contrast_runs(whole) if not (as_json and markdown is None) else []
    people = against_people(stored)
    if markdown is not None:
        _write_markdown(stored, markdown, contrasts, people)
    if as_json:
        _print_json(stored, people)
    else:
        _print_tables(stored, contrasts, people)


def _write_markdown(
    stored: "list[ExamRun]", path: Path, contrasts: "list[Contrast]", people: "list[tuple[AgainstPeople, ...]]"
) -> None:
    from medexam.experiments.compare.runs import run_names
    from medexam.experiments.report.markdown import write_report
    from medexam.experiments.report.papers.human_baseline_tables import people_tables

    write_report(stored, path, contrasts, people_tables(people, run_names(stored)))
    sys.stderr.write(f"wrote {path}\n")


def _print_json(stored: "list[ExamRun]", people: "list[tuple[AgainstPeople, ...]]") -> None:
    from medexam.experiments.store.stored_run import run_document

    documents = [
        run_document(run) | {"against_people": [row.document() for row in rows]}
        for run, rows in zip(stored, people, strict=True)
    ]
    sys.stdout.write(json.dumps(documents, ensure_ascii=False, indent=2) + "\n")


def _write_plots(stored: "list[ExamRun]", folder: Path) -> None:
    from medexam.experiments.report.plots.files import write_plots

    written = write_plots(stored, folder)
    if not written:
        raise SpecError("--plots: no run has scored a question, so there is nothing to draw; leave it out")
    sys.stderr.writelines(f"wrote {path}\n" for path in written)


def _report_paper(stored: "list[ExamRun]", markdown: Path | None, *, as_json: bool) -> None:
    """The tables of the HEAD-QA v2 paper."""
    from medexam.experiments.compare.ranking import ranking_notes
    from medexam.experiments.report.papers.headqa_v2 import (
        build_paper_tables,
        paper_document,
        paper_tables,
        write_paper_report,
    )

    tables = paper_tables(stored)
    if markdown is not None:
        write_paper_report(tables, markdown, ranking_notes(stored))
    _show_layout(stored, paper_document(tables), partial(build_paper_tables, tables), markdown, as_json=as_json)


def _report_headqa_v1(stored: "list[ExamRun]", markdown: Path | None, *, as_json: bool) -> None:
    """The tables of the HEAD-QA v1 paper, which are as wide as they are."""
    from medexam.experiments.compare.ranking import ranking_notes
    from medexam.experiments.report.papers.headqa_v1 import (
        build_headqa_v1_tables,
        headqa_v1_document,
        headqa_v1_tables,
        write_headqa_v1_report,
    )

    tables = headqa_v1_tables(stored)
    if markdown is not None:
        write_headqa_v1_report(tables, markdown, ranking_notes(stored))
    document = headqa_v1_document(tables)
    _show_layout(stored, document, lambda _: build_headqa_v1_tables(tables), markdown, as_json=as_json)


def _show_layout(
    stored: "list[ExamRun]",
    document: Any,
    build: "Callable[[int], Iterable[RenderableType]]",
    markdown: Path | None,
    *,
    as_json: bool,
) -> None:
    """A paper's tables as JSON, or on a terminal of a width that `build` is told; `markdown` is what was written."""
    if markdown is not None:
        sys.stderr.write(f"wrote {markdown}\n")
    if as_json:
        sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
        return
    from rich.console import Console

    console = Console()
    for table in build(console.width):
        console.print(table)
    print_ranking_notes(console, stored)


def _write_page(stored: "list[ExamRun]", path: Path) -> None:
    from medexam.experiments.report.page import write_page

    size = write_page(stored, path)
    sys.stderr.write(f"wrote {path} ({size.questions} questions, {size.bytes / 1e6:.1f} MB)\n")


def _print_tables(
    stored: "list[ExamRun]", contrasts: "list[Contrast]", people: "list[tuple[AgainstPeople, ...]]"
) -> None:
    """Our own tables, and what a reader should know of each run."""
    from rich.console import Console

    from medexam.experiments.compare.runs import run_names
    from medexam.experiments.report.papers.human_baseline_tables import build_people_tables
    from medexam.experiments.report.retrieval_tables import build_contrast_tables, build_retrieval_tables
    from medexam.experiments.report.run_tables import build_cost_tables
    from medexam.experiments.report.score_tables import build_score_tables
    from medexam.experiments.report.tables import build_breakdowns, build_table

    console = Console()
    console.print(build_table(stored))
    print_ranking_notes(console, stored)
    if len(stored) == 1:
        run = stored[0]
        tables = (*build_breakdowns(run), *build_cost_tables(run))
        for table in (*tables, *build_score_tables(run), *build_retrieval_tables(run)):
            console.print(table)
        print_models(console, run)
    for table in build_people_tables(people, run_names(stored)):
        console.print(table)
    for table in build_contrast_tables(contrasts):
        console.print(table)
    for run in stored:
        print_pending(console, run)
        for warning in run.record.warnings:
            console.print(f"Warning: {run.title}: {warning}", highlight=False, markup=False)
