"""One run of a participant's container: the folder that it writes to, and what is kept of how it ran."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from medexam.datasets import find_files
from medexam.errors import DatasetError, RunFolderError, SpecError
from medexam.files import write_whole
from medexam_companions.cliniqlink.container import (
    ContainerEnd,
    ContainerJob,
    Engine,
    call_engine,
    find_engine,
    run_container,
)
from medexam_companions.cliniqlink.questions import write_shown_questions
from medexam_companions.harnesses.imports.words.submission import OUTPUTS


@dataclass(frozen=True)
class ContainerSettings:
    """What the organisers set; see `ContainerJob`."""

    engine: Engine | None
    """None: the first that answers."""
    model: Path | None
    minutes: float
    memory: str | None
    gpus: str | None
    env: tuple[str, ...]
    """Variables as `NAME=VALUE`."""


def run_submission(
    image: str,
    command: tuple[str, ...],
    out: Path,
    data: Path | None,
    settings: ContainerSettings,
    say: Callable[[str], None],
) -> bool:
    """Run the container into the folder `out`, with a log and an account beside it; return whether all is there.

    Raises `SpecError` if no engine answers or a variable has no `=`, `DatasetError` if there are no questions, and
    `RunFolderError` if `out` holds something or the disk fails.
    """
    variables = dict(_split(variable) for variable in settings.env)
    engine = find_engine(settings.engine)
    files = find_files("cliniqlink", "en", data)
    if not files:
        raise DatasetError("there are no questions: name the folder of the seven files by --data")
    log, account = (out.with_name(out.name + ending) for ending in (".log", ".json"))
    try:
        if out.exists() and any(out.iterdir()):
            raise RunFolderError(f"{out} is not empty: choose another folder by --out")
        out.mkdir(parents=True, exist_ok=True)
        # Inside, another user may write than the one who starts it.
        out.chmod(0o777)
        with tempfile.TemporaryDirectory(prefix="medexam-questions-") as name:
            questions = Path(name)
            questions.chmod(0o755)
            counts = write_shown_questions(files[0].parent, questions)
            job = ContainerJob(
                engine=engine,
                image=image,
                questions=questions,
                outputs=out,
                model=settings.model,
                counts=counts,
                minutes=settings.minutes,
                memory=settings.memory,
                gpus=settings.gpus,
                variables=variables,
                command=command,
            )
            started = datetime.now(UTC).isoformat(timespec="seconds")
            end = run_container(job, log)
        out.chmod(0o755)
        missing = [names[0] for group, names in OUTPUTS.items() if group in counts and not _is_written(out, names)]
        write_whole(account, json.dumps(_account(job, started, end, missing), indent=1) + "\n")
    except OSError as error:
        raise RunFolderError(f"{error.filename or out}: {error.strerror or error}") from None
    for line in _describe(job, end, missing, log):
        say(line)
    say(f"medexam cliniqlink score {out}")
    return end.code == 0 and not missing


def _split(variable: str) -> tuple[str, str]:
    name, sign, value = variable.partition("=")
    if not sign or not name:
        raise SpecError(f"--env {variable}: write NAME=VALUE")
    return name, value


def _is_written(out: Path, names: tuple[str, ...]) -> bool:
    return any((out / name).is_file() for name in names)


def _account(job: ContainerJob, started: str, end: ContainerEnd, missing: list[str]) -> dict[str, object]:
    """Describe the run, JSON-ready; variables by name alone, for their values may be secret."""
    version = call_engine(job.engine, "--version")
    return {
        "image": job.image,
        "command": list(job.command),
        "engine": job.engine,
        "engine_version": version.stdout.strip(),
        "started_at": started,
        **asdict(end),
        "minutes": job.minutes,
        "memory": job.memory,
        "gpus": job.gpus,
        "variables": sorted(job.variables),
        "questions": dict(job.counts),
        "missing": missing,
    }


def _describe(job: ContainerJob, end: ContainerEnd, missing: list[str], log: Path) -> list[str]:
    lines = []
    if end.code is None:
        lines.append(f"killed after {job.minutes:g} minutes: see {log}, or allow more time by --minutes")
    elif end.code:
        lines.append(f"{job.engine} ended with exit code {end.code}: see {log}")
    if missing:
        lines.append(f"{', '.join(missing)} missing: {'they score' if len(missing) > 1 else 'it scores'} 0")
    return lines
