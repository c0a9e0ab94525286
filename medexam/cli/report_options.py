"""What `medexam report` is asked for, whatever the runs answer."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Layout(StrEnum):
    """Whose tables are printed."""

    PAPER = "paper"
    HEADQA_V1 = "headqa-v1"


@dataclass(frozen=True)
class ReportOptions:
    """None, or empty, for what is not asked for."""

    as_json: bool = False
    plots: Path | None = None
    """The folder for pictures."""
    markdown: Path | None = None
    html: Path | None = None
    layout: Layout | None = None
    weights: dict[str, float] = field(default_factory=dict)
    """Group of the questions -> its weight on a board."""
