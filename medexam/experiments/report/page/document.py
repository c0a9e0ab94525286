"""One HTML file from stored runs: sections, pictures and questions put into the template, with its styles and scripts.

The template escapes whatever it is given. The page's own policy lets a browser run the scripts of `assets/`, known by
their hashes, and no other, and load nothing.
"""

import base64
import hashlib
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from medexam.datasets.kept import reads_kept
from medexam.errors import MedExamError, RunFolderError
from medexam.experiments.compare.runs import run_names
from medexam.experiments.report.added import find_added_tables
from medexam.experiments.report.findings import describe_readings
from medexam.experiments.report.page.blocks import build_blocks
from medexam.experiments.report.page.entries import read_answers
from medexam.experiments.report.page.overview import PANEL_CAPTION, build_overview
from medexam.experiments.report.page.question_pictures import read_pictures
from medexam.experiments.report.page.sections import build_sections, first_screen_tables, warnings
from medexam.experiments.report.plots.page_svg import render_svg
from medexam.experiments.report.plots.pictures import PLOTS
from medexam.experiments.report.plots.style import looks
from medexam.experiments.report.silences import silences
from medexam.experiments.store.stored_run import AnyRun, ExamRun
from medexam.files import whole_file
from medexam.plugins import __version__

ASSETS = "assets"
STYLE = "page.css"
SCRIPTS = (
    *("folds.js", "tables.js", "copying.js", "blocks.js", "against.js"),
    *("beside.js", "marks.js", "detail.js", "questions.js"),
)
"""In the order in which they need each other."""


@dataclass(frozen=True)
class PageSize:
    """What was written."""

    bytes: int
    questions: int


def write_page(runs: Sequence[AnyRun], path: Path) -> PageSize:
    """Write the page of one run or more, whole or not at all; raises `RunFolderError` where that fails."""
    with reads_kept():
        pieces = render_page(runs)
    try:
        with whole_file(path) as draft:
            with draft.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
                stream.writelines(pieces)
            size = draft.stat().st_size
    except OSError as error:
        raise RunFolderError(
            f"cannot write {path}: {error.strerror or error}; choose another file with --html"
        ) from None
    return PageSize(size, len({key for run in runs for key in run.record.questions}))


def read_asset(name: str) -> str:
    """Read the text of a file of `assets/`."""
    return (files("medexam.experiments.report.page") / ASSETS / name).read_text(encoding="utf-8")


def render_page(runs: Sequence[AnyRun]) -> Iterator[str]:
    """Render the page in pieces."""
    names = run_names(runs)
    plots, no_plots = list[tuple[str, str]](), None
    try:
        plots = draw_plots(runs)
    except MedExamError as error:
        no_plots = str(error)
    overview = build_overview(runs)
    return fill_template(
        "page.html",
        SCRIPTS,
        kind="report",
        title=overview.title,
        about=overview.about,
        verdict=overview.verdict,
        command=shlex.join(["medexam", "report", *(str(run.folder.path) for run in runs)]),
        overview=overview,
        warnings=warnings(runs, names),
        silences=[*describe_readings(runs), *silences(runs)],
        scores=first_screen_tables(runs, PANEL_CAPTION if overview.panels else ""),
        sections=build_sections(runs, names, find_added_tables(runs)[1]),
        plots=[(Markup(svg), caption) for svg, caption in plots],  # noqa: S704 - our own drawing
        no_plots=no_plots,
        blocks=build_blocks(read_answers(runs), runs[0].benchmark.facets, read_pictures(runs)),
    )


def fill_template(template: str, script_names: Sequence[str], **values: Any) -> Iterator[str]:
    """Fill a template of `assets/` in pieces, with the style, these scripts, and a policy that runs nothing else."""
    style, scripts = read_asset(STYLE), [read_asset(name) for name in script_names]
    templates = Environment(
        loader=PackageLoader("medexam.experiments.report.page", ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["code"] = mark_code
    policy = (
        f"default-src 'none'; style-src {policy_hash(style)}; script-src {' '.join(map(policy_hash, scripts))}; "
        f"img-src data:; base-uri 'none'; form-action 'none'"
    )
    return templates.get_template(template).generate(
        version=__version__,
        policy=policy,
        style=Markup(style),  # noqa: S704 - the package's own file
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - the package's own files
        **{"command": "", "verdict": (), "blocks": ()} | values,
    )


def mark_code(text: str) -> Markup:
    """Escape a text, and show what stands between two backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - it is escaped


def draw_plots(runs: Sequence[ExamRun]) -> list[tuple[str, str]]:
    """Draw each plot as SVG, with its caption; without that of the strategies, which the first screen shows."""
    run_looks = looks(runs)
    plots = [PLOTS[name](run_looks) for name in runs[0].benchmark.plots if name != "strategies"]
    return [(render_svg(plot), plot.caption) for plot in plots if plot is not None]


def policy_hash(text: str) -> str:
    """Return what a content security policy calls a style or a script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
