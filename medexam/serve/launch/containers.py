"""A server's command inside a container: docker, podman, or apptainer, which clusters have."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from medexam.errors import EngineError

ContainerRuntime = Literal["docker", "podman", "apptainer"]
_ALWAYS = ("VLLM_API_KEY", "HF_TOKEN")
_FAMILIES = ("NCCL_", "GLOO_", "UCX_", "VLLM_", "HF_", "TRANSFORMERS_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
_OUTSIDE = ("HF_HOME", "HF_HUB_CACHE")
"""Folders outside; inside, they lie where `_HOME_INSIDE` and `_CACHE_INSIDE` say."""
_HOME_INSIDE = "/root/.cache/huggingface"
_CACHE_INSIDE = f"{_HOME_INSIDE}/hub"


def choose_runtime(image: str) -> ContainerRuntime:
    """Choose what runs an image: Apptainer in a Slurm job and for an image of its own, else the first that is here.

    Clusters let nobody run docker, which makes its users root.
    """
    if "SLURM_JOB_ID" in os.environ or image.endswith(".sif") or "://" in image:
        return "apptainer"
    runtimes: tuple[ContainerRuntime, ...] = ("docker", "podman", "apptainer")
    return next((runtime for runtime in runtimes if shutil.which(runtime)), "docker")


def check_runtime(runtime: ContainerRuntime) -> None:
    """Raise `EngineError` if the runtime is not installed."""
    if shutil.which(runtime) is None:
        raise EngineError(
            f"{runtime}, which runs the container, is not on the PATH: install it, or take --python with a Python that "
            "has vLLM instead of --container"
        )


def container_command(
    runtime: ContainerRuntime,
    image: str,
    arguments: Sequence[str],
    *,
    name: str,
    folder: Path | None,
    gpus: Sequence[int] | None,
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    """Build the command that runs `python3` with `arguments` in the image.

    `folder` is a model's, seen inside under the same path, read-only; None: it comes from the hub's cache, which is
    shared. `gpus` None is every card, () none. `environment` is set inside; apptainer takes it from outside.
    """
    if runtime == "apptainer":
        # Apptainer shows the home folder inside of itself.
        folders = (
            [folder]
            if folder is not None
            else [hub_folder for hub_folder in _hub_folders() if _outside_home(hub_folder)]
        )
        bind = [part for path in folders for part in ("--bind", str(path))]
        return ("apptainer", "exec", *([] if gpus == () else ["--nv"]), *bind, image, "python3", *arguments)
    command = [runtime, "run", "--rm", "--init", "--name", name, "--network", "host", "--ipc", "host"]
    command += _cards(runtime, gpus)
    command += [part for variable in passed_on(os.environ) if variable not in environment for part in ("-e", variable)]
    command += [part for key, value in environment.items() for part in ("-e", f"{key}={value}")]
    if folder is not None:
        mounts = [f"{folder}:{folder}:ro"]
    else:
        inside = (_HOME_INSIDE, _CACHE_INSIDE)
        mounts = [f"{outside}:{place}" for outside, place in zip(_hub_folders(), inside, strict=False)]
    command += [part for mount in mounts for part in ("-v", mount)]
    return (*command, "--entrypoint", "python3", image, *arguments)


def passed_on(outside: Iterable[str]) -> tuple[str, ...]:
    """List the variables outside that docker and podman hand on; apptainer hands on all.

    Their values are not on the command line: the runtime takes them from its own environment.
    """
    users = (name for name in sorted(outside) if name.startswith(_FAMILIES) or name.upper() in _PROXIES)
    return tuple(dict.fromkeys((*_ALWAYS, *(name for name in users if name not in _OUTSIDE))))


def _cards(runtime: ContainerRuntime, gpus: Sequence[int] | None) -> list[str]:
    if gpus is not None and not gpus:
        return []
    if runtime == "podman":
        names = ["all"] if gpus is None else [str(index) for index in gpus]
        return [part for name in names for part in ("--device", f"nvidia.com/gpu={name}")]
    # the quotes belong to docker, which reads the value as comma-separated
    return ["--gpus", "all" if gpus is None else f'"device={",".join(map(str, gpus))}"']


def _hub_folders() -> list[Path]:
    """Return the hub's folder outside, and behind it that of its cache, if it lies elsewhere."""
    home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    folders = [home, *filter(None, [os.environ.get("HF_HUB_CACHE")])]
    return [Path(folder).expanduser().absolute() for folder in folders]


def _outside_home(folder: Path) -> bool:
    return not folder.is_relative_to(Path.home())
