"""A participant's container, started once: questions in, outputs out, no network, and limits on time, memory and GPUs.

The paths and variables inside are those of the shared task's image: questions in `/data`, outputs in `/results`, and
`MODE=submit` for its entry point. What differs between Docker, Podman and Apptainer is the command line alone. This
knows nothing of scores.
"""

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from medexam.errors import SpecError

Engine = Literal["docker", "podman", "apptainer"]
ENGINES: tuple[Engine, ...] = ("docker", "podman", "apptainer")
_PROCESSES = 4096
"""Most processes in a container."""
_GRACE_S = 10.0
"""Seconds that a stopped engine has to end by itself."""
_SIZES: Mapping[str, str] = {
    "true_false": "num_tf",
    "multiple_choice": "num_mc",
    "list": "num_list",
    "short": "num_short",
    "short_inverse": "num_short_inv",
    "multi_hop": "num_multi",
    "multi_hop_inverse": "num_multi_inv",
}
"""Format -> the option of the task's `submit.py` for how many questions it asks, 200 by default."""


@dataclass(frozen=True, kw_only=True)
class ContainerJob:
    """What is started, and with what."""

    engine: Engine
    image: str
    """An image's name, or the path of a `.sif` file for Apptainer."""
    questions: Path
    outputs: Path
    model: Path | None = None
    """A folder with weights, read-only in `/models`; None if the image holds them."""
    counts: Mapping[str, int]
    """Format -> questions."""
    minutes: float
    memory: str | None = None
    """Such as `64g`; None: unlimited."""
    gpus: str | None = None
    """`all`, or numbers such as `0,1`; None: no GPU."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the environment inside."""
    command: Sequence[str] = ()
    """What runs inside; empty: what the image says."""

    @property
    def environment(self) -> dict[str, str]:
        """The variables inside."""
        sizes = " ".join(f"--{_SIZES[group]} {count}" for group, count in self.counts.items())
        return {
            "MODE": "submit",
            "DATA_DIR": "/data",
            "OUTPUT_DIR": "/results",
            "MODEL_DIR": "/models",
            "USE_INTERNAL_MODEL": "0" if self.model else "1",
            "EXTRA_SUBMIT_ARGS": f"--data_dir /data --output_dir /results {sizes}",
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            **self.variables,
        }

    def arguments(self, name: str) -> list[str]:
        """Build the command line; `name` is what the container is called, by which it is stopped."""
        mounts = [(self.questions, "/data", "ro"), (self.outputs, "/results", "rw")]
        if self.model is not None:
            mounts.append((self.model, "/models", "ro"))
        for path, _, _ in mounts:
            if ":" in str(path.resolve()) or "," in str(path.resolve()):
                raise SpecError(f"{path.resolve()}: a mounted folder may have no colon or comma in its path")
        binds = [f"{path.resolve()}:{inside}:{mode}" for path, inside, mode in mounts]
        if self.engine == "apptainer":
            return self._apptainer(binds)
        return [
            *(self.engine, "run", "--rm", "--name", name, "--network", "none", "--cap-drop", "ALL"),
            *("--security-opt", "no-new-privileges", "--pids-limit", str(_PROCESSES)),
            *(("--memory", self.memory) if self.memory else ()),
            *self._gpu_options(),
            *(word for bind in binds for word in ("--volume", bind)),
            *(word for variable, value in self.environment.items() for word in ("--env", f"{variable}={value}")),
            self.image,
            *self.command,
        ]

    def _gpu_options(self) -> list[str]:
        if self.gpus is None:
            return []
        if self.engine == "docker":
            # Docker reads the value as CSV, so that a comma in it stands within quotes.
            return ["--gpus", "all" if self.gpus == "all" else f'"device={self.gpus}"']
        # Podman names GPUs by the Container Device Interface.
        return [word for device in self.gpus.split(",") for word in ("--device", f"nvidia.com/gpu={device}")]

    def _apptainer(self, binds: Sequence[str]) -> list[str]:
        variables = self.environment
        if self.gpus and self.gpus != "all":
            variables["CUDA_VISIBLE_DEVICES"] = self.gpus
        return [
            *("apptainer", "exec" if self.command else "run", "--containall", "--cleanenv", "--no-home"),
            *("--writable-tmpfs", "--net", "--network", "none", "--no-privs"),
            *(("--memory", self.memory) if self.memory else ()),
            *(("--nv",) if self.gpus else ()),
            *(word for bind in binds for word in ("--bind", bind)),
            *(word for variable, value in variables.items() for word in ("--env", f"{variable}={value}")),
            self.image,
            *self.command,
        ]


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """How a container ended."""

    seconds: float
    code: int | None
    """The exit code; None if its time was over."""


def find_engine(chosen: Engine | None) -> Engine:
    """Return the engine that is chosen, or the first that answers; raises `SpecError` if there is none."""
    for engine in (chosen,) if chosen else ENGINES:
        if shutil.which(engine) and not call_engine(engine, "version").returncode:
            return engine
    if chosen and shutil.which(chosen):
        raise SpecError(f"{chosen} is installed, but does not answer ({chosen} version): start it, or choose another")
    raise SpecError(f"{chosen or 'no container engine'} is not installed: install one of {', '.join(ENGINES)}")


def call_engine(engine: Engine, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Call the engine and wait, at most a minute."""
    return subprocess.run([engine, *arguments], check=False, capture_output=True, text=True, timeout=60)  # noqa: S603


def run_container(job: ContainerJob, log: Path) -> ContainerEnd:
    """Run the container until it ends or its time is over; what it prints goes to `log`. Raises `OSError`.

    A container whose time is over is killed through its engine, for a client's end leaves Docker's running.
    """
    name = f"medexam-{uuid.uuid4().hex[:12]}"
    start = time.monotonic()
    with log.open("wb") as stream:
        # A session of its own: Apptainer's container is its child, and ends with the group.
        process = subprocess.Popen(  # noqa: S603 - the organisers name the image, and there is no shell
            job.arguments(name),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code: int | None = None
        try:
            code = process.wait(timeout=60 * job.minutes)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if code is None:
                _stop(job.engine, name, process)
    return ContainerEnd(time.monotonic() - start, code)


def _stop(engine: Engine, name: str, process: "subprocess.Popen[bytes]") -> None:
    if engine != "apptainer":
        call_engine(engine, "kill", name)
    try:
        process.wait(timeout=0 if engine == "apptainer" else _GRACE_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
