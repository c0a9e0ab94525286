"""What a job asks Slurm for. `medexam serve` has a flag for each field."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from medexam.toolkit.commands import Setting
from medexam.toolkit.errors import EngineError

SLURM = "Slurm"
"""The panel of settings that only a job has."""


def parse_minutes(text: str) -> int:
    """Parse Slurm's `MINUTES`, `HH:MM:SS`, `D-HH` or `D-HH:MM:SS` to minutes, rounded up; raises `EngineError`."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text.strip())
    if match is None:
        raise EngineError(f"--time {text}: not a time; write HH:MM:SS or D-HH:MM:SS")
    days, *fields = match.groups()
    first, second, third = (int(part or 0) for part in fields)
    if days is None and fields[2] is None:  # MINUTES or MINUTES:SECONDS
        total = first + second / 60
    else:
        total = (int(days or 0) * 24 + first) * 60 + second + third / 60
    if total == 0:
        raise EngineError("--time 0: give the job some time, such as 04:00:00")
    return math.ceil(total)


@dataclass(frozen=True)
class Allocation:
    """What a job asks Slurm for."""

    nodes: Annotated[int, Setting("Nodes of the job; each serves the model.", panel=SLURM, min=1)] = 1
    span: Annotated[bool, Setting("One server over all nodes of the job.", panel=SLURM)] = False
    partition: Annotated[str | None, Setting("Partition to run in; Slurm's own choice by default.", panel=SLURM)] = None
    time: Annotated[str, Setting("Time limit; then the job ends and is requeued.", metavar="HH:MM:SS", panel=SLURM)] = (
        "04:00:00"
    )
    requeues: Annotated[int, Setting("How often the job is requeued.", panel=SLURM, min=0)] = 3
    account: Annotated[str | None, Setting("Account to charge.", panel=SLURM)] = None
    gpus_per_node: Annotated[
        int | None, Setting("GPUs to ask for; as many as the servers of a node take by default.", panel=SLURM, min=0)
    ] = None
    extra: Annotated[
        tuple[str, ...],
        Setting(
            "A further option of sbatch, or another value of a set one: mem=200G, exclusive.",
            flag="--slurm-option",
            metavar="KEY=VALUE",
            panel=SLURM,
        ),
    ] = ()
    folder: Annotated[
        Path, Setting("Folder for script and logs, on storage that all nodes see.", flag="--slurm-folder", panel=SLURM)
    ] = Path()

    def __post_init__(self) -> None:
        """Check `time`; raises `EngineError` unless it is a time."""
        parse_minutes(self.time)

    @property
    def minutes(self) -> int:
        """`time` in minutes."""
        return parse_minutes(self.time)

    @property
    def options(self) -> Mapping[str, str | None]:
        """`extra` as sbatch takes it; None: an option without a value."""
        split = [pair.lstrip("-").partition("=") for pair in self.extra]
        return {key.replace("_", "-"): value if equals else None for key, equals, value in split}
