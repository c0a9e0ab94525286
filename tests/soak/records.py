"""What a soak keeps of each trial."""

import signal
from dataclasses import dataclass, field

SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
WAYS = {"SIGKILL": 8, "SIGTERM": 4, "SIGINT": 4, "server killed": 2, "disk full": 2, "two at once": 2}
"""How a command is disturbed, and how often to each other."""
STAGED = ("beside", "moved", "copied", "half there", "replaced", "named", "refused")
"""What commands meet that are not disturbed."""

CODES = (0, 2, 3)
"""How a command may end that was not killed."""


@dataclass
class Step:
    """One time that the command was carried out."""

    way: str
    """One of `WAYS` or `STAGED`, or `end`."""
    forked: bool
    kills: int = 0
    """Processes that were killed before they ended, the server's included."""
    statuses: list[int] = field(default_factory=list)
    seconds: float = 0.0
    lost: int = 0
    """Pieces that were on the disk before, and are not now."""
    twice: int = 0
    """Questions that were asked although their replies were on the disk."""
    tracebacks: int = 0
    wedges: int = 0
    """Commands that did not end in time, or could not be carried out to their end."""
    phase: str = ""
    """What `run` was at when a signal came."""
    words: list[str] = field(default_factory=list)
    """The commands, where they are not the work's own."""
    said: str = ""
    """What the commands wrote on standard error at the end, or where something is wrong."""

    @property
    def faults(self) -> int:
        """Everything that went wrong."""
        return self.lost + self.twice + self.tracebacks + self.wedges


@dataclass
class Trial:
    """A command in a fresh folder, disturbed and carried out to its end."""

    work: str
    seed: str
    steps: list[Step] = field(default_factory=list)
    differs: bool = False
    """Whether what came out is not what comes out undisturbed."""
    wrong: list[str] = field(default_factory=list)
    """What else went wrong, a line each."""
    left: list[str] = field(default_factory=list)
    """Files that lie there and would not, undisturbed."""

    @property
    def failed(self) -> bool:
        """Whether anything went wrong."""
        return self.differs or bool(self.wrong) or any(step.faults for step in self.steps)
