"""What commands write for programs and for readers: JSON on standard output, a file of Markdown, a copy in MLflow."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from medexam.errors import RunFolderError, TrackingError


def print_json(document: Any) -> None:
    """Write what `--json` asks for to standard output."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def write_markdown(text: str, path: Path) -> None:
    """Write what `--markdown FILE` asks for and say so; raises `RunFolderError` if the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error}; choose another file with --markdown") from None
    sys.stderr.write(f"wrote {path}\n")


def send_to_mlflow(send: Callable[..., object], *what: object, tracking_uri: str | None, runs_dir: Path) -> None:
    """Call `send` with a store, by default that of `runs_dir`; an outage costs only a line: folders are complete."""
    from medexam.experiments.track.store import default_tracking_uri

    try:
        send(*what, tracking_uri=tracking_uri or default_tracking_uri(runs_dir))
    except TrackingError as error:
        sys.stderr.write(f"medexam: {error}\n")
