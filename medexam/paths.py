"""The folder of files that can be made again."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """`$MEDEXAM_CACHE`, else `~/.cache/medexam`."""
    named = os.environ.get("MEDEXAM_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "medexam"
