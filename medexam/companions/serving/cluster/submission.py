"""Submitting a job's script, with a sign in its folders by which the nodes see that these are shared."""

import contextlib
import os
import re
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path

from medexam.companions.serving.cluster.script import Job, job_script
from medexam.toolkit.errors import EngineError
from medexam.toolkit.files import host_name, write_new, write_whole

_SIGN = ".medexam-shared"
_SIGNS = "MEDEXAM_SHARED"
"""Variable of a job: the words of the signs that its submitter left."""
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Submitted:
    """A job that Slurm took."""

    number: str
    script: Path


def submit(job: Job) -> Submitted:
    """Write the script and hand it to `sbatch`; raises `EngineError` if Slurm does not take it."""
    text = job_script(job)
    words = [_leave_sign(folder) for folder in _shared(job)]
    script = job.folder / f"medexam-{job.name}.sbatch"
    try:
        write_whole(script, text)
    except OSError as error:
        raise EngineError(f"{script}: cannot be written: {error.strerror}; name another --slurm-folder") from None
    # The key stays here: Slurm keeps a job's environment, and each node makes a key of its own.
    environment = {key: value for key, value in os.environ.items() if key != "VLLM_API_KEY"}
    try:
        process = subprocess.run(  # noqa: S603
            ("sbatch", "--parsable", str(script)),  # noqa: S607
            env={**environment, _SIGNS: ",".join(words)},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise EngineError(
            "no sbatch is found here; submit from a machine of the cluster, or look at the script with --print"
        ) from None
    except subprocess.TimeoutExpired:
        raise EngineError(f"sbatch does not answer within {_TIMEOUT_S:.0f} s; ask `scontrol ping`") from None
    if process.returncode:
        message = "; ".join(line.removeprefix("sbatch: ") for line in process.stderr.splitlines() if line.strip())
        raise EngineError(f"Slurm does not take the job: {message}; the script is {script}")
    return Submitted(process.stdout.strip().partition(";")[0], script)


def check_signs(folders: tuple[Path, ...]) -> None:
    """Raise `EngineError` if a folder is not the one that the submitter saw; a job without signs is not checked."""
    if not os.environ.get(_SIGNS):
        return
    for folder, word in zip(dict.fromkeys(folders), os.environ[_SIGNS].split(","), strict=False):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if (folder / _SIGN).read_text(encoding="ascii").strip() == word:
                continue
        name = os.environ.get("SLURMD_NODENAME") or host_name()
        raise EngineError(
            f"{name} does not see the same {folder} as the submitting machine; name a folder on shared storage with "
            "--registry and --slurm-folder"
        )


def _shared(job: Job) -> tuple[Path, ...]:
    return tuple(dict.fromkeys((job.folder, job.registry.path.parent)))


def _leave_sign(folder: Path) -> str:
    """Leave a file by which a node knows the folder again; one a folder, kept for jobs that come back."""
    path = folder / _SIGN
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            write_new(path, secrets.token_hex(8))
        word = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"{path}: cannot be written: {error}; name another folder") from None
    if not re.fullmatch(r"[0-9a-f]{16}", word):
        raise EngineError(f"{path}: damaged; remove it and submit again")
    return word
