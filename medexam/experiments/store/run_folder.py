"""A run folder: the truth about one run, readable without this package.

`spec.json` says what was asked for, `environment.json` what really ran, `predictions.jsonl` holds one line per
answered question in the order of finishing, and `metrics.json`, `report.md` and `predictions.parquet` are made from
them. A shard appends the same lines to `parts/PART.jsonl`; the process that holds the folder's lock merges them, and a
driver that was killed leaves them to the next run. This module knows nothing of models, metrics or MLflow.

Who may read and write what is made here the user's umask decides, as for any other result.
"""

import json
import os
import re
import shlex
import shutil
import sys
from collections import ChainMap
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from medexam.datasets.examples import EXAMPLES_FILE
from medexam.errors import RunBusyError, RunFolderError
from medexam.experiments.store.logs import PredictionLog, StoredPredictions, check_file, open_log, scan_predictions
from medexam.experiments.store.paths import find_path
from medexam.files import write_whole
from medexam.inputs import UnreadableError, read_record
from medexam.predictions import Prediction, Status
from medexam.predictions.core import Outcome
from medexam.predictions.prediction import Answered
from medexam.questions import AnySet
from medexam.specs import CellSpec
from medexam.specs.dataset import EXAMPLES, STORED
from medexam.specs.identity import IDENTITY_SCHEMA
from medexam.text import writable

SPEC = "spec.json"
ENVIRONMENT = "environment.json"
PREDICTIONS = "predictions.jsonl"
PARQUET = "predictions.parquet"
METRICS = "metrics.json"
REPORT = "report.md"
SHARDS = "parts"
"""The folder of the shards; it is there only while a run is distributed or was cut off."""
REPEATS = "repeats"
"""The folder of a run's repeats, run folders that were asked the same questions once more. They are no runs of their
own in lists, reports and MLflow; a comparison reads from them how far answers vary."""
_LAST_WRITE_S = 7.0
"""Seconds that a process gets to end whose driver was killed."""
_HELD_BYTES = 2**23
"""Bytes of a log whose predictions are all held in memory: 10,000 with short prompts, about 40 MB."""


def name_part(text: str) -> str:
    """Turn a text into a part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9._]+", "_", text)


def describe_fault(error: ValidationError) -> str:
    """Describe place and kind of the first thing that is wrong with a file."""
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, fault["loc"]))
    return f"{place}: {fault['msg']}" if place else str(fault["msg"])


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
        numbers = [number for number, folder in folders.items() if folder.exists()]
        if numbers and not fresh:
            return folders[max(numbers)]
        name = "-".join(map(name_part, [*words, digest]))
        return cls(parent / (f"{name}-{max(numbers) + 1}" if numbers else name))

    @property
    def name(self) -> str:
        """The folder's name, which is the work's id."""
        return self.path.name

    def exists(self) -> bool:
        """Return whether the work was begun here."""
        return (self.path / self.record).is_file()

    def create(self) -> None:
        """Make the folder; raises `RunFolderError` where that is not possible."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK):
                raise PermissionError(f"no permission to write in {self.path}")
        except OSError as error:
            raise RunFolderError(
                f"cannot write {self.kind}s to {self.path.parent}: {error.strerror or error}; choose another place by "
                "--runs-dir or MEDEXAM_RUNS"
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one process; the system frees the lock of a process that dies.

        Raises `RunBusyError` where another process holds it, and `RunFolderError` where the folder cannot be written.
        """
        # Not waited for: the other process may run for hours, and its answers would be asked again.
        busy = (
            f"{self.kind} {self.name} is being written by another process; wait for it, or start another with --fresh"
        )
        with _hold(self.path / ".lock", self.path, 0, busy):
            yield

    def read_json(self, name: str) -> dict[str, Any]:
        """Read one of the JSON files; raises `RunFolderError` where it cannot be read."""
        path = self.path / name
        try:
            data = read_record(path)
        except FileNotFoundError:
            raise RunFolderError(f"{self.path} holds no {name}: it is not a finished {self.kind} folder") from None
        except (OSError, UnreadableError) as error:
            raise RunFolderError(f"cannot read {path}: {error}") from None
        if not isinstance(data, dict):
            raise RunFolderError(f"{path} is not a JSON object")
        return data

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        """Write one JSON file whole or not at all."""
        self.write_text(name, json.dumps(writable(data), indent=2, ensure_ascii=False, sort_keys=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write one text file whole or not at all."""
        self.write_bytes(name, writable(text).encode("utf-8"))

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write one file whole or not at all."""
        target = self.path / name
        try:
            write_whole(target, data)
        except OSError as error:
            raise RunFolderError(f"cannot write {target}: {error.strerror or error}") from None


@contextmanager
def _hold(lock: Path, folder: Path, wait_s: float, busy: str) -> Iterator[None]:
    """Hold a lock in a folder; raises `RunBusyError` with `busy` where another process does not let it go in time."""
    try:
        # A user who may write in the folder may continue the run.
        held = FileLock(lock, mode=folder.stat().st_mode & 0o666)
        held.acquire(timeout=wait_s)
    except Timeout:
        raise RunBusyError(busy) from None
    except OSError as error:
        raise RunFolderError(f"cannot write {folder}: {error.strerror}; make it writable") from None
    with held:
        yield


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What `spec.json` holds."""

    run_id: str
    schema: int = IDENTITY_SCHEMA
    """The form of the folder."""
    spec_digest: str
    identity: dict[str, Any]
    """Everything that an answer of this run depends on."""
    cell: CellSpec
    """The cell as it was last asked for; the selection of questions may have been another before."""
    description: str
    dataset_version: str
    dataset_source: str
    dataset_fingerprint: str
    """SHA-256 of the questions that the data hold, without golds."""
    dataset_as_published: str | None = None
    """SHA-256 of the questions as their authors published them, if characters of them were corrected before they were
    asked; None: they were asked as published."""
    dataset_corrected: tuple[str, ...] = ()
    """Keys of the data set's questions of which characters were corrected; usually empty."""
    dataset_golds: str
    """SHA-256 of the golds that the run was last scored with."""
    questions: tuple[str, ...]
    """Keys of the questions that were last selected, in the order of the exams."""
    experiment_digest: str
    """Identity of the experiment that the run is a cell of; its cells share it."""
    place: int = 0
    """Position of the cell in its experiment, 0 the first."""
    fresh: bool = False
    """Whether --fresh began it, so that it takes no answers of other runs."""
    keeps_items: bool = True
    """Whether the folder holds the questions; False where a licence forbids it (`--without-items`)."""
    warnings: tuple[str, ...] = ()
    """What a reader of the results should know of how the run was asked for; usually empty."""


_RECORD = TypeAdapter(RunRecord)


def describe_items(items: AnySet) -> dict[str, Any]:
    """Return the fields of a record that say which questions a run is asked, and of which data."""
    return {
        "dataset_version": items.version,
        "dataset_source": items.source,
        "dataset_fingerprint": items.fingerprint,
        "dataset_as_published": items.published_fingerprint,
        "dataset_corrected": items.corrected,
        "dataset_golds": items.golds_fingerprint,
        "questions": tuple(item.key for item in items.questions),
    }


@dataclass(frozen=True)
class RunFolder(WorkFolder):
    """The files of one run under `path`."""

    spec_digest: str | None = field(default=None, compare=False)
    """Digest of the run whose predictions it holds; None: the one that `spec.json` names."""
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
        return RunFolder(self.path / REPEATS / f"{self.name}-repeat-{number}", self.spec_digest)

    def find_repeats(self) -> list["RunFolder"]:
        """Find the repeats that were begun, by number."""
        paths = [path for path in (self.path / REPEATS).glob("*-repeat-*") if path.name[-1].isdecimal()]
        paths.sort(key=lambda path: int(path.name.rpartition("-")[2]))
        return [folder for folder in map(RunFolder, paths) if folder.exists()]

    def read_record(self) -> RunRecord:
        """Read what was asked for; raises `RunFolderError` when the folder holds no run of this version."""
        stored = self.read_json(SPEC)
        if stored.get("schema") != IDENTITY_SCHEMA:
            raise RunFolderError(f"{self.path} was made by another version of medexam: run its spec again")
        try:
            record = _RECORD.validate_python(stored, context=STORED)
        except ValidationError as error:
            raise RunFolderError(
                f"{self.path / SPEC} is not a spec of this package ({describe_fault(error)})"
            ) from None
        # Keys are in many files, and are held once.
        record = replace(record, questions=tuple(map(sys.intern, record.questions)))
        if record.cell.dataset.kind != EXAMPLES:
            return record
        # A folder may have been moved, and its examples with it.
        dataset = record.cell.dataset.model_copy(update={"path": (self.path / EXAMPLES_FILE).absolute()})
        return replace(record, cell=record.cell.model_copy(update={"dataset": dataset}))

    def write_record(self, record: RunRecord) -> None:
        """Write `spec.json`."""
        self.write_json(SPEC, {**record.__dict__, "cell": record.cell.model_dump(mode="json")})

    def read_environment(self) -> dict[str, Any]:
        """Read what really ran, by name of the part; empty if the run stopped before it was known."""
        return self.read_json(ENVIRONMENT) if (self.path / ENVIRONMENT).exists() else {}

    def scan_predictions(self) -> Iterator[Prediction]:
        """Yield every line of `predictions.jsonl`, in the order of writing; raises as `read_predictions` does."""
        path = self.path / PREDICTIONS
        if path.exists():
            yield from (prediction for _, prediction in scan_predictions(path, self._own_digest()))

    def read_predictions(self, keys: Container[str] | None = None) -> dict[str, Prediction]:
        """Read the last prediction of each question, or of `keys`, by key, those of shards that are not merged yet too.

        A torn last line, left by a process that was killed while writing, counts as not written. A line that is
        damaged anywhere else, or belongs to another run, raises `RunFolderError`.
        """
        predictions = {each.question: each for each in self.scan_predictions() if keys is None or each.question in keys}
        return predictions | {key: each for key, each in self._unmerged().items() if keys is None or key in keys}

    def read_outcomes(self) -> dict[str, Outcome]:
        """Read how each question last came out, by key, in shards that are not merged yet too.

        Raises as `read_predictions` does.
        """
        pool: dict[Outcome, Outcome] = {}
        outcomes = {}
        for prediction in self.scan_predictions():
            outcome = Outcome(prediction.status, prediction.answer)
            outcomes[prediction.question] = pool.setdefault(outcome, outcome)
        for prediction in self.scan_shards():
            earlier = outcomes.get(prediction.question)
            if earlier is None or earlier.status is Status.FAILED:
                outcomes[prediction.question] = Outcome(prediction.status, prediction.answer)
        return outcomes

    def count_answers(self) -> int:
        """Count the questions that are answered, or unanswered for good; raises as `read_predictions` does."""
        return sum(outcome.status is not Status.FAILED for outcome in self.read_outcomes().values())

    def count_cut(self) -> int:
        """Count the answers whose prompt did not fit its model's context whole; raises as `read_predictions` does."""
        return sum(prediction.is_cut for prediction in self.read_predictions().values())

    @contextmanager
    def opened_predictions(self, *, prompts: bool = True) -> Iterator[Mapping[str, Prediction]]:
        """Yield what `read_predictions` gives, read from the disk at each look where it is much.

        Without `prompts`, calls of a large run are without what was sent.
        """
        path = self.path / PREDICTIONS
        if not path.exists() or path.stat().st_size <= _HELD_BYTES:
            yield self.read_predictions()
            return
        check_file(path)
        unmerged = self._unmerged()
        with path.open("rb") as stream:
            stored = StoredPredictions(path, stream.fileno(), self._own_digest(), prompts=prompts)
            # A `ChainMap` takes mappings to write to; nobody writes to this one.
            yield ChainMap(unmerged, cast("MutableMapping[str, Prediction]", stored)) if unmerged else stored

    def appending(self) -> AbstractContextManager[PredictionLog]:
        """Open a log that appends predictions; what a dead process left torn is cut off first."""
        return open_log(self.path / PREDICTIONS, keeps_prompts=not self.exists() or self.read_record().keeps_items)

    def shard_path(self, part: int) -> Path:
        """Return where the answers to a part of the run are written."""
        return self.path / SHARDS / f"{part}.jsonl"

    @contextmanager
    def hold_shard(self, part: int) -> Iterator[Path]:
        """Hold a part of the run for this process, and yield where its answers are written.

        Raises `RunBusyError` where another process holds it, and `RunFolderError` where it cannot be written.
        """
        path = self.shard_path(part)
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
        busy = f"part {part} of run {self.name} is being asked by another process; wait for it"
        with _hold(path.with_suffix(".lock"), self.path, _LAST_WRITE_S, busy):
            yield path

    @property
    def has_shards(self) -> bool:
        """Whether something lies in shards."""
        return any(path.is_file() and path.stat().st_size for path in (self.path / SHARDS).glob("*.jsonl"))

    def scan_shards(self) -> Iterator[Prediction]:
        """Yield every prediction of the shards, shard by shard; raises as `read_predictions` does."""
        for path in sorted((self.path / SHARDS).glob("*.jsonl")):
            yield from (prediction for _, prediction in scan_predictions(path, self._own_digest()))

    def merge_shards(self) -> frozenset[str]:
        """Put what workers left in shards into `predictions.jsonl`, and return the keys of the questions that it
        answers.

        The folder must be locked. Raises `RunBusyError` while a shard is written, and `RunFolderError` where a line is
        damaged or belongs to another run, or where nothing can be written.
        """
        shards = self.path / SHARDS
        if not shards.is_dir():
            return frozenset()
        for lock in shards.glob("*.lock"):
            busy = f"part {lock.stem} of run {self.name} is being asked by another process; wait for its end"
            with _hold(lock, self.path, _LAST_WRITE_S, busy):
                pass
        if new := self._unmerged():
            with self.appending() as log:
                for prediction in new.values():
                    log.append(prediction)
        try:
            for path in shards.iterdir():
                path.unlink(missing_ok=True)
        except OSError as error:
            raise RunFolderError(
                f"cannot remove {shards}, which is merged: {error.strerror}; remove it by hand"
            ) from None
        # A worker that outlived its driver by a moment may write once more; the next merge finds that.
        with suppress(OSError):
            shards.rmdir()
        return frozenset(key for key, prediction in new.items() if prediction.status is not Status.FAILED)

    def _unmerged(self) -> dict[str, Prediction]:
        """Find what the shards hold and `predictions.jsonl` does not, by question.

        What is answered there is left out, so that a merge that was cut off is repeated without harm. A failure counts
        only if no answer is known.
        """
        if not (self.path / SHARDS).exists():
            return {}
        # Answers are not kept: a run may be larger than the memory.
        failures = {line.question: line if line.status is Status.FAILED else None for line in self.scan_predictions()}
        new: dict[str, Prediction] = {}
        for prediction in self.scan_shards():
            key = prediction.question
            is_open = new[key].status is Status.FAILED if key in new else failures.get(key, prediction) is not None
            if is_open and prediction != failures.get(key):
                new[key] = prediction
        return new

    def _own_digest(self) -> str:
        return self.spec_digest or self.read_record().spec_digest


def pending(questions: Iterable[str], predictions: Mapping[str, Answered]) -> list[str]:
    """List the keys still to be asked: those without a prediction, and those whose asking failed."""
    return [key for key in questions if key not in predictions or predictions[key].status is Status.FAILED]


def remove_runs(folders: Sequence[RunFolder]) -> None:
    """Remove run folders, all of them or none.

    Raises `RunBusyError` if another process writes one, and `RunFolderError` if one cannot be removed or is a link.
    """
    if links := [folder.path for folder in folders if folder.path.is_symlink()]:
        raise RunFolderError(
            f"{links[0]} is a link to {links[0].resolve()}, and nothing is removed: name that folder, or remove the "
            "link"
        )
    with ExitStack() as locks:
        for folder in folders:
            try:
                locks.enter_context(folder.locked())
            except RunBusyError:
                raise RunBusyError(
                    f"run {folder.name} is being written by another process, and nothing is removed: stop that "
                    "process, or wait for it"
                ) from None
        for folder in folders:
            try:
                shutil.rmtree(folder.path)
            except OSError as error:
                raise RunFolderError(f"cannot remove {folder.path}: {error}") from None


def find_run(run: str, runs_dir: Path) -> RunFolder:
    """Find the run that is meant by its folder, or by its id in `runs_dir` as `find_path` says.

    Raises `RunFolderError` if there is none, or if several may be meant.
    """
    path = Path(run)
    # A link as itself: what is done to it must not be done to where it leads.
    folder = RunFolder(path.absolute() if path.is_symlink() else path.resolve())
    folder = folder if folder.exists() else RunFolder(find_path(run, runs_dir))
    if folder.exists():
        return folder
    raise RunFolderError(f"no run {run} here or in {runs_dir}: give its folder or its id; `medexam list` shows them")


def find_runs(paths: Iterable[Path]) -> list[RunFolder]:
    """Find the run folders named by `paths`, each a run folder or a folder of run folders, in order and without
    repeats.

    Those of one folder come in the order of `runs_inside`.

    Raises `RunFolderError` for a path that is neither.
    """
    folders_by_path: dict[Path, RunFolder] = {}
    for path in paths:
        run_folder = RunFolder(path)
        folders = [run_folder] if run_folder.exists() else runs_inside(path)
        if not folders:
            raise RunFolderError(f"no run at {path}: give a run folder, or a folder that holds run folders")
        folders_by_path.update({folder.path.resolve(): folder for folder in folders})
    return list(folders_by_path.values())


def runs_inside(path: Path) -> list[RunFolder]:
    """List the run folders in the folder `path`; none if it is no folder.

    Runs of one experiment stand together in the order of its spec, and experiments in the order in which they began.
    """
    folders = [RunFolder(child) for child in sorted(path.iterdir())] if path.is_dir() else []
    entries = [(*_place(folder), folder) for folder in folders if folder.exists()]
    experiments: dict[str, list[tuple[int, RunFolder]]] = {}
    for _, experiment, place, folder in sorted(entries, key=itemgetter(0)):
        experiments.setdefault(experiment, []).append((place, folder))
    return [folder for cells in experiments.values() for _, folder in sorted(cells, key=itemgetter(0))]


def _place(folder: RunFolder) -> tuple[str, str, int]:
    """Read when the run began, its experiment and its place there; empty, its own name and 0 if that cannot be read."""
    start_time, experiment, place = "", folder.name, 0
    with suppress(RunFolderError):
        start_time = str(folder.read_environment().get("started_at", ""))
    with suppress(RunFolderError):
        match folder.read_json(SPEC):
            case {"experiment_digest": str(experiment_digest), "place": int(position)}:
                experiment, place = experiment_digest, position
    return start_time, experiment, place
