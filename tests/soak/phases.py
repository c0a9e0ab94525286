"""What `medexam run` is at, by what it printed last and what is on the disk."""

import re
from pathlib import Path

PHASES = ("loading", "probing", "retrieving", "asking", "scoring", "tracking", "page")
_MESSAGE = re.compile(
    r"^(?:(?P<probing>Preparing )|(?P<retrieving>Looking up )|(?P<told>Runs are in |A page of |The MLflow UI: )"
    r"|.*(?P<asking>: asking [\d,]+ of (?P<total>[\d,]+) questions \.\.\.)$|.*(?P<asked> questions)$)",
    re.MULTILINE,
)
"""How lines begin or end that say what is done; a long one goes on in the next line."""


def phase_of(said: str, folder: Path, temporary: Path, since: float) -> str:
    """One of `PHASES`; `temporary` holds temporary folders, of which the page's is made after the moment `since`."""
    messages = list(_MESSAGE.finditer(said))
    if not messages:
        return "loading"
    match messages[-1].lastgroup:
        case "probing" | "retrieving" as phase:
            return phase
        case "asking":
            files = sorted(folder.glob("runs/*/predictions.jsonl"), key=_changed_s)
            done = files[-1].read_bytes().count(b"\n") if files else 0
            return "scoring" if done >= int(messages[-1]["total"].replace(",", "")) else "asking"
        case "told":
            return "page" if any(_changed_s(path) > since for path in temporary.glob("tmp*")) else "tracking"
    return "scoring"


def _changed_s(path: Path) -> float:
    """When a file was changed last, in seconds since 1970; 0 if its owner has removed it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
