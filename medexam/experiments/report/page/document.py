"""One HTML file from stored runs: a template filled with tables, plots and questions.

The template escapes whatever it is given. The page's own policy lets a browser run the script of `assets/`, known by
its hash, and no other, and load nothing.
"""

import base64
import hashlib
import re
import shlex
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from medexam.errors import DatasetError, MedExamError
from medexam.experiments.compare.ranking import ranking_notes
from medexam.experiments.compare.result import describe_all
from medexam.experiments.compare.runs import compare_runs, run_names
from medexam.experiments.report.comparison_tables import comparison_blocks
from medexam.experiments.report.findings import above_chance, describe_readings, lead, silences
from medexam.experiments.report.page.questions import pack_questions
from medexam.experiments.report.plots.runs import plot_runs
from medexam.experiments.report.plots.style import render_svg
from medexam.experiments.report.run_blocks import facet_matrices
from medexam.experiments.report.run_tables import (
    cost_tables,
    describe_settings,
    describe_state,
    describe_warnings,
    failure_tables,
    find_added_tables,
    merge_notes,
    overview_tables,
)
from medexam.experiments.report.shown import Block, user_file
from medexam.experiments.store.stored_run import StoredRun
from medexam.kept import reads_kept
from medexam.measures.evidence.kinds import evidence_tables
from medexam.measures.tables import breakdowns
from medexam.plugins import __version__
from medexam.tables import NONE, Table, six_digits

STRIPS = "Points in the strips: scores; lines: 95 % intervals; dotted: what choosing at random would score."


def write_page(runs: Sequence[StoredRun], path: Path, findings: Sequence[str] = ()) -> str:
    """Write the page of one run or more, whole or not at all, and return what was written, as a line.

    It opens on these findings, if there are any, and on who leads. Raises `RunFolderError` where it cannot be written.
    """
    with reads_kept():
        pieces = render_page(runs, findings)
    with user_file(path, "--html") as draft:
        with draft.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
            stream.writelines(pieces)
        size = draft.stat().st_size
    count = len({key for run in runs for key in run.record.questions})
    return f"wrote {path} ({count} questions, {size / 1e6:.1f} MB)"


def render_page(runs: Sequence[StoredRun], findings: Sequence[str] = ()) -> Iterator[str]:
    """Render the page in pieces."""
    names, plots = run_names(runs), list[tuple[str, str]]()
    data, notes = pack_questions(runs, names)
    findings = list(filter(None, [*findings, lead(runs), above_chance(runs)]))
    lines = [*describe_readings(runs), *silences(runs)]
    try:
        # The first screen shows what the plot of the strategies does.
        plots = [(render_svg(plot), plot.caption) for plot in plot_runs(runs) if plot.name != "strategies"]
    except MedExamError as error:
        lines.append(f"Plots are left out: {error}")
    states = [f"{name}: {describe_state(run)}" for run, name in zip(runs, names, strict=True) if not run.complete]
    descriptions = [(name, run.record.description or "") for run, name in zip(runs, names, strict=True)]
    assets = files("medexam.experiments.report.page") / "assets"
    style, script = ((assets / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    policy = (
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    loader = PackageLoader("medexam.experiments.report.page", "assets")
    templates = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters.update(
        code=lambda text: Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))),  # noqa: S704 - escaped
        six_digits=six_digits,
        anchor=lambda title: re.sub(r"\W+", "-", title.lower()).strip("-"),
    )
    return templates.get_template("page.html").generate(
        version=__version__,
        policy=policy.format(*hashes),
        style=Markup(style),  # noqa: S704 - the package's own file
        script=Markup(script),  # noqa: S704 - the package's own file
        title=", ".join(dict.fromkeys(run.record.cell.name for run in runs)),
        about=describe_runs(runs),
        findings=findings,
        command=shlex.join(["medexam", "report", *(str(run.folder.path) for run in runs)]),
        warnings=[note for note in [*ranking_notes(runs), *describe_warnings(runs), *states] if note not in findings],
        lines=[*merge_notes([pair for pair in descriptions if pair[1]], len(runs)), *lines],
        tables=overview_tables(runs),
        strips=STRIPS,
        sections=[part for part in build_sections(runs, names, find_added_tables(runs)[1]) if part[1]],
        plots=plots,
        notes=notes,
        data=data,
    )


def describe_runs(runs: Sequence[StoredRun]) -> str:
    """Describe what was asked of which model, and when."""
    models = list(dict.fromkeys(run.model for run in runs if run.model is not None))
    parts = [
        models[0] if len(models) == 1 else f"{len(models)} models" if models else "",
        ", ".join(dict.fromkeys(run.record.cell.dataset.label for run in runs)),
        f"{len({key for run in runs for key in run.record.questions}):,} questions",
        f"{len(runs)} runs" if len(runs) > 1 else runs[0].program,
        max(str(run.environment.get("ended_at") or "")[:10] for run in runs),
    ]
    return " · ".join(filter(None, parts))


def build_sections(
    runs: Sequence[StoredRun], names: Sequence[str], tables: Sequence[Table]
) -> Iterator[tuple[str, Sequence[Block]]]:
    """Yield title and blocks of every part that a reader opens; `names` tell the runs apart."""
    facets = [breakdowns(run.benchmark, run.metrics) for run in runs]
    yield "Runs", [_runs(runs, names)]
    yield from _comparisons(runs)
    yield from ((table.title, [table]) for table in tables)
    yield "Scores by group", facet_matrices(runs) if len(runs) > 1 else facets[0]
    yield "Costs", cost_tables(runs)
    yield "Failed questions", failure_tables(runs)
    for run, name, groups in zip(runs, names, facets, strict=True):
        details = [*evidence_tables(run.metrics.evidence), describe_settings(run)]
        yield f"Details of {name}", [*groups, *details] if len(runs) > 1 else details


def _runs(runs: Sequence[StoredRun], names: Sequence[str]) -> Table:
    rows = tuple(
        (
            *(name, run.record.cell.name, run.model or "none", run.record.cell.dataset.label, str(run.folder.path)),
            str(run.environment.get("ended_at") or run.environment.get("started_at") or NONE)[:16].replace("T", " "),
            str(run.metrics.n),
            f"{run.metrics.exams} exams" if run.metrics.exams else "",
            run.status,
        )
        for run, name in zip(runs, names, strict=True)
    )
    headers = ("Run", "Experiment", "Model", "Data set", "Folder", "When", "n", "Of", "State")
    caption = "n: questions scored. Model none: a control, which asks no model. When: the last time it asked, UTC."
    return Table("Runs", headers, rows, text_columns=6, caption=caption)


def _comparisons(runs: Sequence[StoredRun]) -> Iterator[tuple[str, Sequence[Block]]]:
    groups: dict[str, list[StoredRun]] = {run.record.cell.dataset.name: [] for run in runs}
    for run in sorted(runs, key=lambda run: run.mixed):
        groups[run.record.cell.dataset.name].append(run)
    for dataset, group in groups.items():
        title = f"Paired comparison on {dataset}" if len(groups) > 1 else "Paired comparison"
        try:
            if len(group) > 1:
                yield title, comparison_blocks(compare_runs(tuple(run.folder for run in group)), flips=0)
        except DatasetError as error:
            yield title, [f"{describe_all(group).capitalize()} cannot be compared: {error}."]
