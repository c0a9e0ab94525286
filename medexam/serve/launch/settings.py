"""How a model is served: what `medexam serve`, a Slurm job and a run that starts its own server all choose from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ContainerRuntime = Literal["docker", "podman", "apptainer"]


@dataclass(frozen=True)
class ServerSettings:
    """How the servers of one model are started; Slurm jobs are pickled with it, so its fields are plain."""

    replicas: int = 1
    """Servers of the same model, each with its own port and GPUs."""
    gpus: tuple[int, ...] | None = None
    """Indices of the GPUs to use; None: every one that is found."""
    python: Path | None = None
    """The Python that has vLLM; None: the one that runs this code."""
    container: str | None = None
    """Image to run vLLM from, instead of `python`; None: no container."""
    container_runtime: ContainerRuntime = "docker"
    port: int | None = None
    """Port of the first replica, the others take the next ones; None: the first free ones from 8000 on."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 is every one of this machine."""
    served_name: str | None = None
    """Name that clients ask for; None: the profile's, or the model's own."""
    max_context: int | None = None
    """Tokens of prompt and reply together; None: the profile's, or the model's own."""
