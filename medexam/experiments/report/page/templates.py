"""What pages are made with: templates that escape, styles, scripts, and a policy that lets nothing else run or load."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from medexam.errors import RunFolderError
from medexam.files import whole_file

ASSETS = "assets"
STYLE = "page.css"


def write_pieces(pieces: Iterable[str], path: Path) -> int:
    """Write a page whole or not at all; its size in bytes. Raises `RunFolderError` where that fails."""
    try:
        with whole_file(path) as draft:
            with draft.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
                stream.writelines(pieces)
            return draft.stat().st_size
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error}; choose another file with --html") from None


def open_templates() -> Environment:
    """The templates of `assets/`, which escape whatever they are given."""
    return Environment(
        loader=PackageLoader("medexam.experiments.report.page", ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def read_asset(name: str) -> str:
    """The text of a file of `assets/`."""
    return (files("medexam.experiments.report.page") / ASSETS / name).read_text(encoding="utf-8")


def write_policy(style: str, scripts: Sequence[str]) -> str:
    """A content security policy under which the page's own style and scripts work, and nothing else does."""
    allowed = " ".join(_hash(script) for script in scripts) or "'none'"
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {allowed}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
