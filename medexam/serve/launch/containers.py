"""A server's command inside a container: docker, podman, or apptainer, which clusters have."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

ContainerRuntime = Literal["docker", "podman", "apptainer"]
_ALWAYS = ("VLLM_API_KEY", "HF_TOKEN")
_FAMILIES = ("NCCL_", "GLOO_", "UCX_", "VLLM_", "HF_", "TRANSFORMERS_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


def choose_runtime(image: str) -> ContainerRuntime:
    """Choose what runs an image: Apptainer in a Slurm job and for an image of its own, else the first that is here.

    Clusters let nobody run docker, which makes its users root.
    """
    if "SLURM_JOB_ID" in os.environ or image.endswith(".sif") or "://" in image:
        return "apptainer"
    runtimes: tuple[ContainerRuntime, ...] = ("docker", "podman", "apptainer")
    return next((runtime for runtime in runtimes if shutil.which(runtime)), "docker")


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

    `folder` is a model's, read-only; None: it comes from the hub's cache. Both are seen inside under the same paths.
    `gpus` None is every card, () none. `environment` is set inside; apptainer takes it from outside.
    """
    hub_folders = [Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface").expanduser().absolute()]
    if "HF_HUB_CACHE" in os.environ:
        hub_folders.append(Path(os.environ["HF_HUB_CACHE"]).expanduser().absolute())
    if runtime == "apptainer":
        # Apptainer shows the home folder inside of itself.
        folders = [each for each in hub_folders if not each.is_relative_to(Path.home())] if folder is None else [folder]
        bind = [part for path in folders for part in ("--bind", str(path))]
        return ("apptainer", "exec", *([] if gpus == () else ["--nv"]), *bind, image, "python3", *arguments)
    mounts = [f"{folder}:{folder}:ro"]
    if folder is None:
        mounts = [f"{each}:{each}" for each in hub_folders]
        environment = {**environment, "HF_HOME": str(hub_folders[0])}
    # The values are not on the command line: docker and podman take them from their own environment.
    users = [name for name in sorted(os.environ) if name.startswith(_FAMILIES) or name.upper() in _PROXIES]
    passed_on = [name for name in dict.fromkeys((*_ALWAYS, *users)) if name not in environment]
    command = [runtime, "run", "--rm", "--init", "--name", name, "--network", "host", "--ipc", "host"]
    command += _cards(runtime, gpus)
    command += [part for variable in passed_on for part in ("-e", variable)]
    command += [part for key, value in environment.items() for part in ("-e", f"{key}={value}")]
    command += [part for mount in mounts for part in ("-v", mount)]
    return (*command, "--entrypoint", "python3", image, *arguments)


def _cards(runtime: ContainerRuntime, gpus: Sequence[int] | None) -> list[str]:
    if gpus is not None and not gpus:
        return []
    if runtime == "podman":
        names = ["all"] if gpus is None else [str(index) for index in gpus]
        return [part for name in names for part in ("--device", f"nvidia.com/gpu={name}")]
    # the quotes belong to docker, which reads the value as comma-separated
    return ["--gpus", "all" if gpus is None else f'"device={",".join(map(str, gpus))}"']
