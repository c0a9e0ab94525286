"""How a model is served: what `medexam serve`, a Slurm job and a run that starts its own server all choose from.

`medexam serve` has a flag for each field.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from medexam.errors import EngineError
from medexam.settings import Setting

ContainerRuntime = Literal["docker", "podman", "apptainer"]
SLURM = "Slurm"
"""The panel of settings that only a job has."""


def parse_gpus(text: str) -> tuple[int, ...]:
    """Indices of GPUs such as `0,1`; raises `EngineError`."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise EngineError(f"--gpus {text}: not a list of GPUs; write their numbers, such as --gpus 0,1") from None


def parse_minutes(text: str) -> int:
    """Minutes in Slurm's `MINUTES`, `HH:MM:SS`, `D-HH` or `D-HH:MM:SS`, rounded up; raises `EngineError`."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text.strip())
    if found is None:
        raise EngineError(f"--time {text}: not a time; write HH:MM:SS or D-HH:MM:SS")
    days, *rest = found.groups()
    first, second, third = (int(part or 0) for part in rest)
    if days is None and rest[2] is None:  # MINUTES or MINUTES:SECONDS
        total = first + second / 60
    else:
        total = (int(days or 0) * 24 + first) * 60 + second + third / 60
    if total == 0:
        raise EngineError("--time 0: give the job some time, such as 04:00:00")
    return math.ceil(total)


@dataclass(frozen=True)
class ServerSettings:
    """How the servers of one model are started; Slurm jobs are pickled with it, so its fields are plain."""

    replicas: Annotated[int, Setting("Servers of the same model, each with its own port and GPUs.", min=1)] = 1
    gpus: Annotated[
        tuple[int, ...] | None, Setting("GPUs to use; every one by default.", metavar="0,1", parse=parse_gpus)
    ] = None
    python: Annotated[
        Path | None, Setting("The Python that has vLLM; $MEDEXAM_VLLM_PYTHON or this one by default.")
    ] = None
    container: Annotated[str | None, Setting("Run vLLM from a container.", metavar="IMAGE")] = None
    container_runtime: Annotated[ContainerRuntime, Setting("What runs the container.")] = "docker"
    port: Annotated[
        int | None,
        Setting("Port of the first server; the first free ones from 8000 on by default.", min=1, max=65535),
    ] = None
    host: Annotated[str, Setting("Address to serve on; 0.0.0.0 is every one.")] = "127.0.0.1"
    served_name: Annotated[
        str | None,
        Setting("Name that clients ask for; the profile's or the model's own by default.", flag="--served-model-name"),
    ] = None
    max_context: Annotated[
        int | None,
        Setting(
            "Tokens of prompt and reply together; those of the profile or the model by default.",
            flag="--max-model-len",
            min=1,
        ),
    ] = None


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
        tuple[str, ...], Setting("Another option of sbatch's.", flag="--slurm-option", metavar="KEY=VALUE", panel=SLURM)
    ] = ()
    folder: Annotated[
        Path, Setting("Folder for scripts and logs, on storage that all nodes see.", flag="--slurm-folder", panel=SLURM)
    ] = Path("slurm")

    def __post_init__(self) -> None:
        """Raises `EngineError` unless `time` is a time."""
        parse_minutes(self.time)

    @property
    def minutes(self) -> int:
        """`time` in minutes."""
        return parse_minutes(self.time)

    @property
    def options(self) -> Mapping[str, str | bool]:
        """`extra` as sbatch takes it; an option without a value is True."""
        split = [pair.lstrip("-").partition("=") for pair in self.extra]
        return {key.replace("_", "-"): value if equals else True for key, equals, value in split}
