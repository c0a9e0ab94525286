"""A run folder: the truth about one run, readable without this package.

`spec.json` says what was asked for, `environment.json` what really ran, `predictions.jsonl` holds one line per
answered question in the order of finishing, and `metrics.json`, `report.md` and `predictions.parquet` are made from
them when a run ends. A shard appends the same lines to `parts/PART.jsonl`; the process that holds the folder's lock
merges them, and a driver that was killed leaves them to the next run. This module knows nothing of models, metrics or
MLflow.

Who may read and write what is made here the user's umask decides, as for any other result.
"""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from medexam.datasets.examples import EXAMPLES_FILE
from medexam.errors import RunBusyError, RunFolderError
from medexam.experiments.store.logs import PredictionLog, StoredPredictions, json_bytes, scan_predictions, writing
from medexam.files import UnreadableError, read_json, write_whole
from medexam.model_calls import Reading
from medexam.predictions import Prediction, Status
from medexam.predictions.prediction import Answered, Outcome
from medexam.specs import CellSpec
from medexam.specs.base import describe_faults
from medexam.specs.dataset import EXAMPLES, STORED
from medexam.specs.identity import IDENTITY_SCHEMA
from medexam.text import writable

SPEC = "spec.json"
ENVIRONMENT = "environment.json"
PREDICTIONS = "predictions.jsonl"
PARQUET = "predictions.parquet"
METRICS = "metrics.json"
REPORT = "report.md"
DERIVED = (METRICS, REPORT, PARQUET)
"""What is made from the others. They are removed before anything else changes, so where they lie they are true."""
SHARDS = "parts"
"""The folder of the shards; it is there only while a run is distributed or was cut off."""
REPEATS = "repeats"
"""The folder of a run's repeats. They are no runs of their own in lists, reports and MLflow; a comparison reads from
them how far answers vary."""
_LAST_WRITE_S = 7.0
"""Seconds that a process gets to end whose driver was killed."""
_HELD_BYTES = 2**23
"""Bytes of a log whose predictions are all held in memory: 10,000 with short prompts, about 40 MB."""
_BYSTANDER = re.compile(r"mlartifacts|mlflow\.db.*|.*\.html")
"""What may lie in a folder of runs and is none."""


def name_part(text: str) -> str:
    """Turn a text into a part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9._]+", "_", text)


@dataclass(frozen=True)
class WorkFolder:
    """The files of one piece of work under `path`, a run or an optimization."""

    path: Path
    kind: ClassVar[str]
    """What the work is called in messages."""
    record: ClassVar[str]
    """The file that says what was asked for."""

    @classmethod
    def last_or_new(cls, words: Sequence[str], digest: str, parent: Path, *, fresh: bool) -> Self:
        """Return the last folder in `parent` of work of this digest and of the first of these words.

        The other words say to people what the work is, and identify nothing. A new folder without one, or if `fresh`.
        """
        form = re.compile(rf"{re.escape(name_part(words[0]))}-.*-{digest}(?:-(\d+))?")
        names = [path.name for path in parent.iterdir()] if parent.is_dir() else []
        folders = {int(match[1] or 1): cls(parent / name) for name in names if (match := form.fullmatch(name))}
        last = max((number for number, folder in folders.items() if folder.exists()), default=0)
        if last and not fresh:
            return folders[last]
        return cls(parent / ("-".join(map(name_part, [*words, digest])) + (f"-{last + 1}" if last else "")))

    @property
    def name(self) -> str:
        """The folder's name, which is the work's id."""
        return self.path.name

    def exists(self) -> bool:
        """Return whether the work was begun here."""
        return (self.path / self.record).is_file()

    def create(self) -> None:
        """Make the folder; raises `RunFolderError` where that is not possible."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def locked(self, part: int | str | None = None) -> Iterator[None]:
        """Hold the folder, or the shard of this number, for one process.

        The system frees the lock of a process that dies. Raises `RunBusyError` where another process holds it, and
        `RunFolderError` where the folder cannot be written.
        """
        name, what = (".lock", "") if part is None else (f"{SHARDS}/{part}.lock", f"part {part} of ")
        with writing(self.path):
            # A user who may write in the folder may continue the run.
            lock = FileLock(self.path / name, mode=self.path.stat().st_mode & 0o666)
            try:
                # Not waited for long: the other process may run for hours, and its answers would be asked again.
                lock.acquire(timeout=0 if part is None else _LAST_WRITE_S)
            except Timeout:
                raise RunBusyError(
                    f"{what}{self.kind} {self.name} is being written by another process; wait for it, or start another "
                    "with --fresh"
                ) from None
        with lock:
            yield

    def read_json(self, name: str) -> dict[str, Any]:
        """Read one of the JSON files; raises `RunFolderError` where it cannot be read."""
        path = self.path / name
        try:
            data = read_json(path)
        except FileNotFoundError:
            raise RunFolderError(f"{self.path} holds no {name}: it is not a finished {self.kind} folder") from None
        except (OSError, UnreadableError) as error:
            raise RunFolderError(f"cannot read {path}: {error}") from None
        if not isinstance(data, dict):
            raise RunFolderError(f"{path} is not a JSON object")
        return data

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        """Write one JSON file whole or not at all."""
        self.write(name, json_bytes(data, indent=2) + b"\n")

    def write(self, name: str, content: str | bytes) -> None:
        """Write one file whole or not at all."""
        with writing(self.path / name):
            write_whole(self.path / name, content)


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What `spec.json` holds."""

    run_id: str
    schema: int = IDENTITY_SCHEMA
    spec_digest: str
    identity: dict[str, Any]
    """Everything that an answer of this run depends on."""
    cell: CellSpec
    """The cell as it was last asked for; the selection of questions may have been another before."""
    description: str = ""
    dataset_version: str
    dataset_source: str
    dataset_files: str = ""
    """SHA-256 of the files' bytes; empty if they are not known."""
    dataset_fingerprint: str
    """SHA-256 of the questions that the data hold, without golds."""
    dataset_golds: str
    """SHA-256 of the golds that the run was last scored with."""
    questions: tuple[str, ...]
    """Keys of the questions that were last selected, in the order of the exams."""
    fresh: bool = False
    """Whether --fresh began it, so that it takes no answers of other runs."""
    keeps_items: bool = True
    """Whether the folder holds the questions; False where a licence forbids it (`--without-items`)."""
    warnings: tuple[str, ...] = ()
    """What a reader of the results should know of how the run was asked for."""


@dataclass
class _Details:
    warnings: Sequence[str] = ()


@dataclass
class _Engine:
    model: str = ""
    guided_by: str | None = None
    details: _Details | None = None


@dataclass
class _Environment:
    """What of `environment.json` is computed with; the rest is shown."""

    engine: _Engine | None = None
    imported: dict[str, Any] | None = None
    prices: dict[str, float] | None = None
    asked: int = 0
    asked_s: float = 0.0
    git_commit: str | None = None


_RECORD, _ENVIRONMENT = TypeAdapter(RunRecord), TypeAdapter(_Environment)


@dataclass(frozen=True)
class RunFolder(WorkFolder):
    """The files of one run under `path`.

    What reads predictions raises `RunFolderError` for a line that another run wrote, or that is damaged. A torn last
    line, left by a process that was killed while writing, counts as not written.
    """

    kind = "run"
    record = SPEC

    @property
    def resume_command(self) -> str:
        """The command that asks the run's pending questions."""
        return f"medexam run --resume {shlex.quote(str(self.path))}"

    @property
    def repeat_number(self) -> int:
        """Which repeat of another run it is, from 1; 0 if it is none."""
        return int(self.name.rpartition("-")[2]) if self.path.parent.name == REPEATS else 0

    def repeat(self, number: int) -> "RunFolder":
        """Return the folder of the run's repeat of this number, from 1."""
        return RunFolder(self.path / REPEATS / f"{self.name}-repeat-{number}")

    def find_repeats(self) -> list["RunFolder"]:
        """Find the repeats that were begun, by number."""
        paths = [path for path in (self.path / REPEATS).glob("*-repeat-*") if path.name[-1].isdecimal()]
        return sorted(filter(RunFolder.exists, map(RunFolder, paths)), key=lambda folder: folder.repeat_number)

    def read_record(self) -> RunRecord:
        """Read what was asked for; raises `RunFolderError` when the folder holds no run of this version."""
        stored = self.read_json(SPEC)
        if stored.get("schema") != IDENTITY_SCHEMA:
            raise RunFolderError(f"{self.path} was made by another version of medexam: run its spec again with --fresh")
        try:
            record = _RECORD.validate_python(stored, context=STORED)
        except ValidationError as error:
            fault = describe_faults(error)
            raise RunFolderError(f"{self.path / SPEC} is not a spec of this package ({fault})") from None
        # Keys are in many files, and are held once.
        record = replace(record, questions=tuple(map(sys.intern, record.questions)))
        if record.cell.dataset.kind != EXAMPLES:
            return record
        # A folder may have been moved, and its examples with it.
        dataset = record.cell.dataset.model_copy(update={"path": (self.path / EXAMPLES_FILE).absolute()})
        return replace(record, cell=record.cell.model_copy(update={"dataset": dataset}))

    def write_record(self, record: RunRecord, *, scores_stay: bool = False) -> None:
        """Write `spec.json`, and remove scores of another one unless they stay."""
        document = writable({**record.__dict__, "cell": record.cell.model_dump(mode="json")})
        if not self.exists() or self.read_json(SPEC) != json.loads(json.dumps(document)):
            if not scores_stay:
                self.drop_derived()
            self.write_json(SPEC, document)

    def drop_derived(self) -> None:
        """Remove what was made from the run's answers, which are going to change."""
        for name in DERIVED:
            (self.path / name).unlink(missing_ok=True)

    @property
    def is_scored(self) -> bool:
        """Whether the scores of all its answers lie there."""
        return all((self.path / name).exists() for name in (PREDICTIONS, *DERIVED)) and not self.shard_logs

    @property
    def log_bytes(self) -> int:
        """Size of `predictions.jsonl`; 0 without it."""
        path = self.path / PREDICTIONS
        return path.stat().st_size if path.exists() else 0

    def read_environment(self) -> dict[str, Any]:
        """Read what really ran, by name of the part; empty if the run stopped before it was known.

        Raises `RunFolderError` where a part that is computed with has another form.
        """
        stored = self.read_json(ENVIRONMENT) if (self.path / ENVIRONMENT).exists() else {}
        try:
            _ENVIRONMENT.validate_python(stored)
        except ValidationError as error:
            raise RunFolderError(
                f"{self.path / ENVIRONMENT} is damaged ({describe_faults(error)}): restore it, or remove it, so that "
                "nothing is known of what ran"
            ) from None
        return stored

    def _reader(self) -> tuple[str | None, Reading]:
        """Return the digest that its predictions carry, and how replies are read; nothing is known of a new folder."""
        record = self.read_record() if self.exists() else None
        return (None, "strict") if record is None else (record.spec_digest, record.cell.program.read_as)

    def scan_predictions(self, *, merged: bool = True) -> Iterator[Prediction]:
        """Yield `predictions.jsonl` if `merged`, then what shards hold of questions without an answer there.

        So a merge that was cut off is repeated without harm. Replies are read as the run reads them now.
        """
        answered, shard_logs, reader = set[str](), self.shard_logs, self._reader()
        for name in (PREDICTIONS, *shard_logs):
            for _, prediction in scan_predictions(self.path / name, *reader):
                if merged if name == PREDICTIONS else prediction.question not in answered:
                    yield prediction
                if shard_logs and prediction.status is not Status.FAILED:
                    answered.add(prediction.question)

    def read_predictions(self, keys: Container[str] | None = None) -> Mapping[str, Prediction]:
        """Read the last prediction of each question, or of `keys`, by key, those of shards too.

        Where all are wanted and they are many, each is read from the disk when it is looked at.
        """
        if keys is None and self.log_bytes > _HELD_BYTES and not self.shard_logs:
            return StoredPredictions(self.path / PREDICTIONS, *self._reader())
        return {each.question: each for each in self.scan_predictions() if keys is None or each.question in keys}

    def read_outcomes(self) -> dict[str, Outcome]:
        """Read how each question last came out, by key, in shards too."""
        return {each.question: Outcome(each.status, each.answer) for each in self.scan_predictions()}

    def appending(self, file: str = PREDICTIONS) -> PredictionLog:
        """Open a log that appends predictions; what a dead process left torn is cut off first."""
        if file == PREDICTIONS:
            self.drop_derived()
        return PredictionLog(self.path / file, keeps_prompts=not self.exists() or self.read_record().keeps_items)

    @property
    def shard_logs(self) -> list[str]:
        """The logs of shards that are not merged; usually none."""
        logs = (self.path / SHARDS).glob("*.jsonl")
        return sorted(f"{SHARDS}/{path.name}" for path in logs if path.is_file() and path.stat().st_size)

    def merge_shards(self) -> None:
        """Put what workers left in shards into `predictions.jsonl`.

        The folder must be locked. Raises `RunBusyError` while a shard is written, and `RunFolderError` where a log
        cannot be read, or nothing can be written.
        """
        shards = self.path / SHARDS
        for lock in shards.glob("*.lock"):
            with self.locked(lock.stem):
                pass
        if self.shard_logs:
            with self.appending() as log:
                for prediction in self.scan_predictions(merged=False):
                    log.append(prediction)
        for path in shards.glob("*"):
            path.unlink(missing_ok=True)
        # A worker that outlived its driver by a moment may write once more; the next merge finds that.
        with suppress(OSError):
            shards.rmdir()


def pending(questions: Iterable[str], predictions: Mapping[str, Answered]) -> list[str]:
    """List the keys still to be asked: those without a prediction, and those whose asking failed."""
    return [key for key in questions if key not in predictions or predictions[key].status is Status.FAILED]


def remove_runs(folders: Sequence[RunFolder]) -> None:
    """Remove run folders, all of them or none; raises `RunBusyError`, or `RunFolderError` of a link or a fault."""
    with ExitStack() as locks:
        for folder in folders:
            locks.enter_context(folder.locked())
        for folder in folders:
            try:
                shutil.rmtree(folder.path)
            except OSError as error:
                raise RunFolderError(f"cannot remove {folder.path}: {error}") from None


def default_runs_dir() -> Path:
    """Return `$MEDEXAM_RUNS`, else `./runs`."""
    return Path(os.environ.get("MEDEXAM_RUNS") or "runs")


def run_paths(runs: Iterable[Path], runs_dir: Path) -> list[Path]:
    """Return each of `runs` as a path: itself if it exists, else the run in `runs_dir` that it means.

    MLflow's files and pages, which `runs/*` in a shell names too, are left out.
    """
    all_runs = [*runs]
    named = [run for run in all_runs if not (_BYSTANDER.fullmatch(run.name) and run.exists())]
    return [_find_path(run, runs_dir) for run in named or all_runs]


def split_id(run_id: str) -> tuple[str, str]:
    """Split a run's id into its name and its digest, to which a further run adds its number; "" for what is none."""
    parts = re.split(r"-(?=[0-9a-f]{12}(?:-\d+)?$)", run_id)
    return parts[0], parts[-1] if parts[1:] else ""


def _find_path(run: Path, runs_dir: Path) -> Path:
    """Return the path if it exists, else the only run beside it, or of `runs_dir`, whose id or digest begins so.

    A path that does not exist is given back where no run is meant. Raises `RunFolderError` if several are.
    """
    folder = run.parent if len(run.parts) > 1 else runs_dir
    if run.exists() or run == runs_dir:
        return run
    names = sorted(child.name for child in folder.iterdir() if child.is_dir()) if folder.is_dir() else []
    likely = [name for name in names if name.startswith(run.name) or split_id(name)[1].startswith(run.name)]
    matches = [run.name] if run.name in names else likely
    if len(matches) > 1:
        raise RunFolderError(
            f"{run} may be {len(matches)} runs in {folder}: {', '.join(matches[:5])}; give more of the id, or the "
            "first digits behind its last hyphen"
        )
    return folder / (matches[0] if matches else run.name)


def find_run(run: str, runs_dir: Path) -> RunFolder:
    """Find the run that `run_paths` means; raises `RunFolderError` if there is none, or if several may be meant."""
    folder = RunFolder(_find_path(Path(run), runs_dir))
    if not folder.exists():
        raise RunFolderError(
            f"no run {run} here or in {runs_dir}: give its folder or its id; `medexam list` shows them"
        )
    # A link as itself: what is done to it must not be done to where it leads.
    return RunFolder(folder.path.absolute() if folder.path.is_symlink() else folder.path.resolve())


def find_runs(runs: Iterable[Path], runs_dir: Path = Path()) -> list[RunFolder]:
    """Find the run folders that are meant and those inside others, once each; raises `RunFolderError` without one."""
    folders_by_path: dict[Path, RunFolder] = {}
    for path in run_paths(runs, runs_dir):
        folders = [RunFolder(path)] if RunFolder(path).exists() else runs_inside(path)
        if not folders:
            raise RunFolderError(f"no run at {path}: give a run folder, or a folder that holds run folders")
        folders_by_path.update({folder.path.resolve(): folder for folder in folders})
    return list(folders_by_path.values())


def runs_inside(path: Path) -> list[RunFolder]:
    """List the run folders in the folder `path` in the order in which they began; none if it is no folder."""
    starts: dict[RunFolder, str] = {}
    for folder in filter(RunFolder.exists, map(RunFolder, sorted(path.iterdir()) if path.is_dir() else [])):
        starts[folder] = ""
        with suppress(RunFolderError):
            starts[folder] = str(folder.read_environment().get("started_at", ""))
    return sorted(starts, key=starts.__getitem__)
