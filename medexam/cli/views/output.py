"""What commands write for other programs and for readers: JSON on standard output, and Markdown in a file."""

import json
import sys
from pathlib import Path
from typing import Any

from medexam.errors import RunFolderError


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
