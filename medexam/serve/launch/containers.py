"""A server's command inside a container: docker, podman, or apptainer, which clusters have."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from medexam.errors import EngineError
from medexam.serve.launch.settings import ContainerRuntime

_ALWAYS = ("VLLM_API_KEY", "HF_TOKEN")
_FAMILIES = ("NCCL_", "GLOO_", "UCX_", "VLLM_", "HF_", "TRANSFORMERS_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
_OUTSIDE = ("HF_HOME", "HF_HUB_CACHE")
"""Folders outside; inside, the cache lies where `_CACHE_INSIDE` says."""
_CACHE_INSIDE = "/root/.cache/huggingface"


def check_runtime(runtime: ContainerRuntime) -> None:
    """Raise `EngineError` if the runtime is not installed."""
    if shutil.which(runtime) is None:
        others = " or ".join(name for name in ("docker", "podman", "apptainer") if name != runtime)
        raise EngineError(
            f"{runtime} is not on the PATH; name another with --container-runtime ({others}), or take --python with a "
            "Python that has vLLM instead of --container"
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
    """The command that runs `python3` with `arguments` in the image.

    `folder` is a model's, seen inside under the same path, read-only; None: it comes from the hub's cache, which is
    shared. `gpus` None is every card, () none. `environment` is set inside; apptainer takes it from outside.
    """
    if runtime == "apptainer":
        seen = folder or _hub_cache()
        # Apptainer shows the home folder inside of itself.
        bind = [] if folder is None and seen.is_relative_to(Path.home()) else ["--bind", str(seen)]
        return ("apptainer", "exec", *([] if gpus == () else ["--nv"]), *bind, image, "python3", *arguments)
    command = [runtime, "run", "--rm", "--init", "--name", name, "--network", "host", "--ipc", "host"]
    command += _cards(runtime, gpus)
    command += [part for variable in passed_on(os.environ) if variable not in environment for part in ("-e", variable)]
    command += [part for key, value in environment.items() for part in ("-e", f"{key}={value}")]
    command += ["-v", f"{folder}:{folder}:ro" if folder is not None else f"{_hub_cache()}:{_CACHE_INSIDE}"]
    return (*command, "--entrypoint", "python3", image, *arguments)


def passed_on(outside: Iterable[str]) -> tuple[str, ...]:
    """Of variables outside those that docker and podman hand on; apptainer hands on all.

    Their values are not on the command line: the runtime takes them from its own environment.
    """
    users = (one for one in sorted(outside) if one.startswith(_FAMILIES) or one.upper() in _PROXIES)
    return tuple(dict.fromkeys((*_ALWAYS, *(one for one in users if one not in _OUTSIDE))))


def _cards(runtime: ContainerRuntime, gpus: Sequence[int] | None) -> list[str]:
    if gpus is not None and not gpus:
        return []
    if runtime == "podman":
        names = ["all"] if gpus is None else [str(index) for index in gpus]
        return [part for name in names for part in ("--device", f"nvidia.com/gpu={name}")]
    # the quotes belong to docker, which reads the value as comma-separated
    return ["--gpus", "all" if gpus is None else f'"device={",".join(map(str, gpus))}"']


def _hub_cache() -> Path:
    return Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface").expanduser().absolute()
