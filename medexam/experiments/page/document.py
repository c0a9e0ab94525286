"""One HTML file from stored runs: sections, pictures and questions put into the template, with its styles and scripts.

The template escapes whatever it is given. The page's own policy lets a browser run the scripts of `assets/`, told by
their hashes, and no other, and load nothing.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from medexam import __version__
from medexam.errors import MedExamError, RunFolderError
from medexam.experiments.comparing import run_names
from medexam.experiments.page.blocks import build_blocks
from medexam.experiments.page.reading import ReadRuns, read_answers
from medexam.experiments.page.sections import build_sections, warnings
from medexam.experiments.pictures import Picture, build_pictures
from medexam.experiments.summary import ExamRun
from medexam.experiments.tables import comparison

ASSETS = "assets"
STYLE = "page.css"
SCRIPTS = ("tables.js", "blocks.js", "detail.js", "questions.js")
"""In the order in which they need each other."""


@dataclass(frozen=True)
class PageSize:
    """What was written."""

    bytes: int
    questions: int


def write_page(read: ReadRuns, path: Path) -> PageSize:
    """Write the page of one run or more, whole or not at all; raises `RunFolderError` where that fails."""
    draft = path.parent / f".{path.name}.draft"
    try:
        with draft.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
            stream.writelines(render_page(read))
        size = draft.stat().st_size
        draft.replace(path)
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error}; choose another file with --html") from None
    finally:
        _remove(draft)
    return PageSize(size, len({key for run in read.runs for key in run.record.questions}))


def _remove(draft: Path) -> None:
    with suppress(OSError):
        draft.unlink(missing_ok=True)


def render_page(read: ReadRuns) -> Iterator[str]:
    """The page in pieces."""
    runs = read.runs
    names = run_names(runs)
    pictures, no_pictures = _pictures(runs)
    style, scripts = _asset(STYLE), [_asset(name) for name in SCRIPTS]
    template = _environment().get_template("page.html")
    return template.generate(
        title=comparison(runs).title,
        version=__version__,
        policy=_policy(style, scripts),
        style=Markup(style),  # noqa: S704 - the package's own file
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - the package's own files
        warnings=[*warnings(runs, names), *read.without_data],
        sections=build_sections(runs, names),
        pictures=[(picture, base64.b64encode(picture.png).decode("ascii")) for picture in pictures],
        no_pictures=no_pictures,
        blocks=build_blocks(read_answers(runs)),
    )


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("medexam.experiments.page", ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _asset(name: str) -> str:
    return (files("medexam.experiments.page") / ASSETS / name).read_text(encoding="utf-8")


def _policy(style: str, scripts: Sequence[str]) -> str:
    """A content security policy under which the page's own style and scripts work, and nothing else does."""
    allowed = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {allowed}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _pictures(runs: Sequence[ExamRun]) -> tuple[list[Picture], str | None]:
    """The pictures, or none and why."""
    try:
        return build_pictures(runs), None
    except MedExamError as error:
        return [], str(error)
