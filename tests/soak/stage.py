"""Where a trial of several commands takes place: each is carried out, waited for, and noted as a step."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak.children import Child, start
from soak.records import CODES, Step, Trial
from soak.server import ServerProcess

LIMIT_S = 120.0
"""A command that takes this much longer than undisturbed hangs."""

Words = Sequence[str]


@dataclass
class Stage:
    """One trial's folder and chance, and how commands are carried out in it."""

    trial: Trial
    chance: random.Random
    folder: Path
    scratch: Path
    """The folder around it, where the streams of commands go."""
    inputs: Path
    server: ServerProcess
    running: Words = ()
    """The words of the command that the work is about."""
    undisturbed: Any = None
    """What comes out of that command alone."""
    start: Callable[..., Child] = start
    limit_s: float = LIMIT_S
    children: list[Child] = field(default_factory=list)
    """Those of the step before, which have ended."""

    def carry_out(
        self,
        way: str,
        *commands: Words,
        delay_s: float = 0.0,
        cwd: Path | None = None,
        before: Callable[[], object] = bool,
        meanwhile: Callable[[list[Child]], object] = bool,
    ) -> Step:
        """Begin commands, each so many seconds after the one before, wait for all, and note the step."""
        step, begun = Step(way, forked=True), time.monotonic()
        step.words = [" ".join(words) for words in commands]
        self.trial.steps.append(step)
        self.children = []
        try:
            for number, words in enumerate(commands):
                time.sleep(delay_s if number else 0.0)
                streams = self.scratch / f"streams-{number}"
                self.children.append(self.start(words, cwd or self.folder, streams, before=before))
            meanwhile(self.children)
            deadline = time.monotonic() + self.limit_s
            for child in self.children:
                step.wedges += not child.wait(deadline - time.monotonic())
        finally:
            for child in self.children:
                child.end()
        step.seconds = round(time.monotonic() - begun, 2)
        step.statuses = [child.status or 0 for child in self.children]
        step.tracebacks = sum(map(is_fault, self.children))
        step.said = "\n".join(child.said[-3000:] for child in self.children)
        return step

    def blame(self, wrong: str) -> None:
        """Note something that went wrong, beside what is counted."""
        self.trial.wrong.append(wrong)


def is_fault(child: Child) -> bool:
    """Whether it ended in a way that no command may: with a traceback, or an exit code that means nothing."""
    said = child.said
    killed = child.status is not None and child.status < 0
    return (
        "Traceback (most recent call last)" in said
        or "Exception ignored in" in said
        or not (killed or child.status in CODES)
    )
