"""What `medexam run` is at, by what it printed last and what is on the disk."""

import re
from pathlib import Path

PHASES = ("loading", "probing", "retrieving", "asking", "scoring", "tracking", "page")
_ASKING = re.compile(r": asking [\d,]+ of ([\d,]+) questions \.\.\.$")


def phase_of(said: str, folder: Path, temporary: Path, since: float) -> str:
    """One of `PHASES`; `temporary` holds temporary folders, of which the page's is made after the moment `since`."""
    last = said.splitlines()[-1] if said.strip() else ""
    if last.startswith("Preparing "):
        return "probing"
    if last.startswith("Looking up "):
        return "retrieving"
    if asking := _ASKING.search(last):
        files = sorted(folder.glob("runs/*/predictions.jsonl"), key=lambda path: path.stat().st_mtime)
        done = files[-1].read_bytes().count(b"\n") if files else 0
        return "scoring" if done >= int(asking[1].replace(",", "")) else "asking"
    if last.startswith(("Runs are in ", "A page of ", "The MLflow UI: ")):
        return "page" if any(path.stat().st_mtime > since for path in temporary.glob("tmp*")) else "tracking"
    return "scoring" if last.endswith(" questions") else "loading"
