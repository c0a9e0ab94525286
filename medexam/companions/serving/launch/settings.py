"""How a model is served: what `medexam serve`, a Slurm job and a run that starts its own server all choose from.

`medexam serve` has a flag for each field.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from medexam.toolkit.commands import Setting
from medexam.toolkit.errors import EngineError

ContainerRuntime = Literal["docker", "podman", "apptainer"]


def parse_gpus(text: str) -> tuple[int, ...]:
    """Parse indices of GPUs such as `0,1`; raises `EngineError`."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise EngineError(f"--gpus {text}: not a list of GPUs; write their numbers, such as --gpus 0,1") from None


@dataclass(frozen=True)
class ServerSettings:
    """How the servers of one model are started."""

    replicas: Annotated[int, Setting("Servers of the same model, each with its own port and GPUs.", min=1)] = 1
    gpus: Annotated[
        tuple[int, ...] | None, Setting("GPUs to use; every one by default.", metavar="0,1", parse=parse_gpus)
    ] = None
    python: Annotated[
        Path | None, Setting("The Python that has vLLM; $MEDEXAM_VLLM_PYTHON or this one by default.")
    ] = None
    container: Annotated[str | None, Setting("Run vLLM from a container.", metavar="IMAGE")] = None
    container_runtime: Annotated[
        ContainerRuntime | None, Setting("What runs the container; docker by default, apptainer in a Slurm job.")
    ] = None
    port: Annotated[
        int | None, Setting("Port of the first server; the first free ones from 8000 on by default.", min=1, max=65535)
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

    @property
    def runtime(self) -> ContainerRuntime:
        """What runs the container, if there is one."""
        return self.container_runtime or "docker"


@dataclass(frozen=True)
class FleetSettings:
    """How servers that were started are watched, and where runs find them."""

    log: Annotated[Path | None, Setting("Folder for vLLM's output, or a file that ends in .log; ./ by default.")] = None
    timeout: Annotated[float, Setting("Seconds that the model may take to load.", min=1)] = 1800.0
    restarts: Annotated[int, Setting("How often a server that crashed is started again.", min=0)] = 3
    registry: Annotated[Path | None, Setting("File in which runs find the servers; this machine's own by default.")] = (
        None
    )
