"""A participant's container, started once: questions in, outputs out, no network, and limits on time, memory and GPUs.

The paths and variables inside are those of the shared task's image: questions in `/data`, outputs in `/results`, and
`MODE=submit` for its entry point. What differs between Docker, Podman and Apptainer is the command line alone. This
knows nothing of scores.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from medexam.datasets import find_files
from medexam.errors import DatasetError, RunFolderError, SpecError
from medexam.files import write_whole
from medexam.text import print_notice
from medexam_companions.cliniqlink.commands import ContainerSettings, Engine
from medexam_companions.cliniqlink.reading import FILES, read_items
from medexam_companions.harnesses import output_paths

_PROCESSES = 4096
"""Most processes in a container."""
_GRACE_S = 10.0
"""Seconds that a stopped engine has to end by itself."""
_FORMATS: Mapping[str, tuple[str, frozenset[str]]] = {
    "true_false": ("num_tf", frozenset()),
    "multiple_choice": ("num_mc", frozenset({"options"})),
    "list": ("num_list", frozenset({"options"})),
    "short": ("num_short", frozenset()),
    "short_inverse": ("num_short_inv", frozenset({"false_answer"})),
    "multi_hop": ("num_multi", frozenset()),
    "multi_hop_inverse": ("num_multi_inv", frozenset({"answer", "reasoning"})),
}
"""Format -> the option of the task's `submit.py` for how many questions it asks, 200 by default; and the fields shown
beside the question, where the inverse formats show a wrong answer."""
_ALWAYS = frozenset({"question", "type", "id", "source"})
"""Fields of every format; `source` names the paragraph, not its text."""


def run_submission(settings: ContainerSettings) -> bool:
    """Run the container into the folder `out`, with a log and an account beside it; return whether all is there.

    Raises `SpecError` if no engine answers, `DatasetError` if there are no questions, and `RunFolderError` if `out`
    holds something.
    """
    engine, out = _find_engine(settings.engine), settings.out
    files = find_files("cliniqlink", "en", settings.data)
    if not files:
        raise DatasetError("there are no questions: name the folder of the seven files by --data")
    log, account = (out.with_name(out.name + ending) for ending in (".log", ".json"))
    if out.exists() and any(out.iterdir()):
        raise RunFolderError(f"{out} is not empty: choose another folder by --out")
    out.mkdir(parents=True, exist_ok=True)
    # Inside, another user may write than the one who starts it.
    out.chmod(0o777)
    with tempfile.TemporaryDirectory(prefix="medexam-questions-") as name:
        questions = Path(name)
        questions.chmod(0o755)
        counts = _write_shown_questions(files[0].parent, questions)
        mounts = {"/data:ro": questions, "/results:rw": out}
        mounts |= {"/models:ro": settings.model} if settings.model is not None else {}
        started, start = datetime.now(UTC), time.monotonic()
        code = _run(engine, settings, mounts, counts, log)
        seconds = time.monotonic() - start
    out.chmod(0o755)
    missing = [f"{kind}.json" for kind in counts if not output_paths(out, kind)]
    document = {
        "image": settings.image,
        "command": settings.command or [],
        "engine": engine,
        "engine_version": _call_engine(engine, "--version").stdout.strip(),
        "started_at": started.isoformat(timespec="seconds"),
        "seconds": seconds,
        "code": code,
        "minutes": settings.minutes,
        "memory": settings.memory,
        "gpus": settings.gpus,
        # By name alone, for their values may be secret.
        "variables": sorted(variable.partition("=")[0] for variable in settings.env or ()),
        "questions": counts,
        "missing": missing,
    }
    write_whole(account, json.dumps(document, indent=1) + "\n")
    if code is None:
        print_notice(f"killed after {settings.minutes:g} minutes: see {log}, or allow more time by --minutes")
    elif code:
        print_notice(f"{engine} ended with exit code {code}: see {log}")
    if missing:
        print_notice(f"{', '.join(missing)} missing: {'they score' if len(missing) > 1 else 'it scores'} 0")
    print_notice(f"medexam cliniqlink score {out}")
    return code == 0 and not missing


def _write_shown_questions(data: Path, folder: Path) -> dict[str, int]:
    """Write the files of `data` into `folder`, without what is expected; return how many questions each format has."""
    counts: dict[str, int] = {}
    for kind, name in FILES.items():
        if not (data / name).is_file():
            continue
        fields = _ALWAYS | _FORMATS[kind][1]
        items = [{key: item[key] for key in item if key in fields} for item in read_items(data / name)]
        (folder / name).write_text(json.dumps(items, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        counts[kind] = len(items)
    if not counts:
        raise DatasetError(f"{data}: holds none of {', '.join(FILES.values())}")
    return counts


def _build_arguments(
    engine: Engine, name: str, settings: ContainerSettings, mounts: Mapping[str, Path], counts: Mapping[str, int]
) -> list[str]:
    """Build the command line; `name` is what the container is called, by which it is stopped."""
    binds = [f"{path.resolve()}:{inside}" for inside, path in mounts.items()]
    if wrong := next((path for path in mounts.values() if set(":,") & set(str(path.resolve()))), None):
        raise SpecError(f"{wrong.resolve()}: a mounted folder may have no colon or comma in its path")
    sizes = " ".join(f"--{_FORMATS[kind][0]} {count}" for kind, count in counts.items())
    variables = {
        "MODE": "submit",
        "DATA_DIR": "/data",
        "OUTPUT_DIR": "/results",
        "MODEL_DIR": "/models",
        "USE_INTERNAL_MODEL": "0" if settings.model else "1",
        "EXTRA_SUBMIT_ARGS": f"--data_dir /data --output_dir /results {sizes}",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        **dict(variable.partition("=")[::2] for variable in settings.env or ()),
    }
    gpus = settings.gpus
    if engine == "apptainer":
        if gpus and gpus != "all":
            variables["CUDA_VISIBLE_DEVICES"] = gpus
        first = ["exec" if settings.command else "run", "--containall", "--cleanenv", "--no-home", "--writable-tmpfs"]
        first += ["--net", "--network", "none", "--no-privs", *(["--nv"] if gpus else [])]
    else:
        first = ["run", "--rm", "--name", name, "--network", "none", "--cap-drop", "ALL"]
        first += ["--security-opt", "no-new-privileges", "--pids-limit", str(_PROCESSES)]
        if gpus and engine == "docker":
            # Docker reads the value as CSV, so that a comma in it stands within quotes.
            first += ["--gpus", "all" if gpus == "all" else f'"device={gpus}"']
        elif gpus:
            # Podman names GPUs by the Container Device Interface.
            first += [word for device in gpus.split(",") for word in ("--device", f"nvidia.com/gpu={device}")]
    return [
        *(engine, *first),
        *(("--memory", settings.memory) if settings.memory else ()),
        *(word for bind in binds for word in ("--bind" if engine == "apptainer" else "--volume", bind)),
        *(word for variable, value in variables.items() for word in ("--env", f"{variable}={value}")),
        settings.image,
        *(settings.command or ()),
    ]


def _find_engine(engine_name: Engine | None) -> Engine:
    """Return the engine that is chosen, or the first that answers; raises `SpecError` if there is none."""
    engines: Sequence[Engine] = (engine_name,) if engine_name else get_args(Engine)
    for engine in engines:
        if shutil.which(engine) and not _call_engine(engine, "version").returncode:
            return engine
    if engine_name and shutil.which(engine_name):
        raise SpecError(
            f"{engine_name} is installed, but does not answer ({engine_name} version): start it, or choose another"
        )
    raise SpecError(
        f"{engine_name or 'no container engine'} is not installed: install one of {', '.join(get_args(Engine))}"
    )


def _call_engine(engine: Engine, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Call the engine and wait, at most a minute."""
    return subprocess.run([engine, *arguments], check=False, capture_output=True, text=True, timeout=60)  # noqa: S603


def _run(
    engine: Engine, settings: ContainerSettings, mounts: Mapping[str, Path], counts: Mapping[str, int], log: Path
) -> int | None:
    """Run the container until it ends, and return its exit code; None if its time was over.

    What it prints goes to `log`. A container whose time is over is killed through its engine, for a client's end leaves
    Docker's running.
    """
    name = f"medexam-{uuid.uuid4().hex[:12]}"
    arguments = _build_arguments(engine, name, settings, mounts, counts)
    code: int | None = None
    # A session of its own: Apptainer's container is its child, and ends with the group.
    with (
        log.open("wb") as stream,
        subprocess.Popen(  # noqa: S603 - the organisers name the image, and there is no shell
            arguments, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            code = process.wait(timeout=60 * settings.minutes)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if code is None:
                if engine != "apptainer":
                    _call_engine(engine, "kill", name)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=0 if engine == "apptainer" else _GRACE_S)
                if process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
    return code
