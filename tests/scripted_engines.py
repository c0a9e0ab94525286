"""Scripted engines as engines of one's own: a test sees what they were asked, or has them reply by a function."""

from pathlib import Path

from medexam.serve import ScriptedEngine

MADE: list[ScriptedEngine] = []
"""In order; a test may put its own here."""
LAST_MADE, SCRIPTED = f"{__name__}:last_made", f"{__name__}:scripted"
"""Engines for specs: the last of them; one more, of a script."""


def last_made() -> ScriptedEngine:
    return MADE[-1]


def scripted(path: str) -> ScriptedEngine:
    """Make the engine of a script, as `{engine: scripted, path: ...}` does."""
    MADE.append(ScriptedEngine.from_file(Path(path)))
    return MADE[-1]
