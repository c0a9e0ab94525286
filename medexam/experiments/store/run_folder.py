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
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from medexam.datasets.examples import EXAMPLES_FILE
from medexam.errors import RunBusyError, RunFolderError
from medexam.experiments.store.logs import PredictionLog, StoredPredictions, check_file, scan_predictions
from medexam.files import write_whole
from medexam.inputs import UnreadableError, read_json
from medexam.predictions import Prediction, Status
from medexam.predictions.core import Outcome
from medexam.predictions.prediction import Answered
from medexam.questions import AnySet
from medexam.specs import CellSpec
from medexam.specs.dataset import EXAMPLES, STORED
from medexam.specs.identity import IDENTITY_SCHEMA
from medexam.text import nearest, writable

SPEC = "spec.json"
ENVIRONMENT = "environment.json"
PREDICTIONS = "predictions.jsonl"
PARQUET = "predictions.parquet"
METRICS = "metrics.json"
REPORT = "report.md"
SHARDS = "parts"
"""The folder of the shards; it is there only while a run is distributed or was cut off."""
REPEATS = "repeats"
"""The folder of a run's repeats. They are no runs of their own in lists, reports and MLflow; a comparison reads from
them how far answers vary."""
_LAST_WRITE_S = 7.0
"""Seconds that a process gets to end whose driver was killed."""
_HELD_BYTES = 2**23
"""Bytes of a log whose predictions are all held in memory: 10,000 with short prompts, about 40 MB."""
_MOST_MATCHES = 5
"""How many runs are named that a text may mean."""
_BYSTANDER = re.compile(r"mlartifacts|mlflow\.db.*|.*\.html")
"""What may lie in a folder of runs and is none."""


def name_part(text: str) -> str:
    """Turn a text into a part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9._]+", "_", text)


def describe_fault(error: ValidationError) -> str:
    """Describe place and kind of the first thing that is wrong with a file."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return ": ".join(filter(None, (".".join(map(str, fault["loc"])), str(fault["msg"]))))


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
    def locked(self, part: int | str | None = None) -> Iterator[None]:
        """Hold the folder, or the shard of this number, for one process.

        The system frees the lock of a process that dies. Raises `RunBusyError` where another process holds it, and
        `RunFolderError` where the folder cannot be written.
        """
        name, what = (".lock", "") if part is None else (f"{SHARDS}/{part}.lock", f"part {part} of ")
        try:
            # A user who may write in the folder may continue the run.
            lock = FileLock(self.path / name, mode=self.path.stat().st_mode & 0o666)
            # Not waited for long: the other process may run for hours, and its answers would be asked again.
            lock.acquire(timeout=0 if part is None else _LAST_WRITE_S)
        except Timeout:
            raise RunBusyError(
                f"{what}{self.kind} {self.name} is being written by another process; wait for it, or start another "
                "with --fresh"
            ) from None
        except OSError as error:
            raise RunFolderError(f"cannot write {self.path}: {error.strerror}; make it writable") from None
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
        self.write(name, json.dumps(writable(data), indent=2, ensure_ascii=False, sort_keys=False) + "\n")

    def write(self, name: str, content: str | bytes) -> None:
        """Write one file whole or not at all."""
        target = self.path / name
        try:
            write_whole(target, content)
        except OSError as error:
            raise RunFolderError(f"cannot write {target}: {error.strerror or error}") from None


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
    description: str
    dataset_version: str
    dataset_source: str
    dataset_fingerprint: str
    """SHA-256 of the questions that the data hold, without golds."""
    dataset_as_published: str | None = None
    """SHA-256 of the questions as their authors published them; None: they were asked as published."""
    dataset_corrected: tuple[str, ...] = ()
    """Keys of the data set's questions of which characters were corrected before they were asked."""
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
    """What a reader of the results should know of how the run was asked for."""


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
    """The files of one run under `path`.

    What reads predictions raises `RunFolderError` for a line that another run wrote, or that is damaged. A torn last
    line, left by a process that was killed while writing, counts as not written.
    """

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
        return sorted(filter(RunFolder.exists, map(RunFolder, paths)), key=lambda folder: folder.repeat_number)

    def read_record(self) -> RunRecord:
        """Read what was asked for; raises `RunFolderError` when the folder holds no run of this version."""
        stored = self.read_json(SPEC)
        if stored.get("schema") != IDENTITY_SCHEMA:
            raise RunFolderError(f"{self.path} was made by another version of medexam: run its spec again")
        try:
            record = _RECORD.validate_python(stored, context=STORED)
        except ValidationError as error:
            fault = describe_fault(error)
            raise RunFolderError(f"{self.path / SPEC} is not a spec of this package ({fault})") from None
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

    def scan_predictions(self, file: str = PREDICTIONS) -> Iterator[Prediction]:
        """Yield every line of a log, in the order of writing."""
        path = self.path / file
        if path.exists():
            digest = self.spec_digest or self.read_record().spec_digest
            yield from (prediction for _, prediction in scan_predictions(path, digest))

    def scan_unmerged(self) -> Iterator[Prediction]:
        """Yield what the shards hold and `predictions.jsonl` does not; a failure only if no answer is known.

        So a merge that was cut off is repeated without harm.
        """
        if not self.has_shards:
            return
        # Answers are not held: a run may be larger than the memory.
        last = {line.question: line if line.status is Status.FAILED else None for line in self.scan_predictions()}
        for path in sorted((self.path / SHARDS).glob("*.jsonl")):
            for prediction in self.scan_predictions(f"{SHARDS}/{path.name}"):
                before = last.get(prediction.question, prediction.question)
                if before is not None and before != prediction:
                    last[prediction.question] = prediction if prediction.status is Status.FAILED else None
                    yield prediction

    def read_predictions(self, keys: Container[str] | None = None) -> dict[str, Prediction]:
        """Read the last prediction of each question, or of `keys`, by key, those of shards too."""
        parts = (self.scan_predictions(), self.scan_unmerged())
        return {each.question: each for part in parts for each in part if keys is None or each.question in keys}

    def read_outcomes(self) -> dict[str, Outcome]:
        """Read how each question last came out, by key, in shards too."""
        pool: dict[Outcome, Outcome] = {}
        outcomes = {}
        for part in (self.scan_predictions(), self.scan_unmerged()):
            for prediction in part:
                outcome = Outcome(prediction.status, prediction.answer)
                outcomes[prediction.question] = pool.setdefault(outcome, outcome)
        return outcomes

    def count_answers(self) -> int:
        """Count the questions that are answered, or unanswered for good."""
        return sum(outcome.status is not Status.FAILED for outcome in self.read_outcomes().values())

    @contextmanager
    def opened_predictions(self, *, prompts: bool = True) -> Iterator[Mapping[str, Prediction]]:
        """Yield what `read_predictions` gives, read from the disk at each look where it is much.

        Without `prompts`, calls of a large run are without what was sent.
        """
        path = self.path / PREDICTIONS
        if not path.exists() or path.stat().st_size <= _HELD_BYTES or self.has_shards:
            yield self.read_predictions()
            return
        check_file(path)
        with path.open("rb") as stream:
            digest = self.spec_digest or self.read_record().spec_digest
            yield StoredPredictions(path, stream, digest, prompts=prompts)

    def appending(self, file: str = PREDICTIONS) -> PredictionLog:
        """Open a log that appends predictions; what a dead process left torn is cut off first."""
        return PredictionLog(self.path / file, keeps_prompts=not self.exists() or self.read_record().keeps_items)

    @property
    def has_shards(self) -> bool:
        """Whether something lies in shards."""
        return any(path.is_file() and path.stat().st_size for path in (self.path / SHARDS).glob("*.jsonl"))

    def merge_shards(self) -> frozenset[str]:
        """Put what workers left in shards into `predictions.jsonl`, and return the keys of the questions that it
        answers.

        The folder must be locked. Raises `RunBusyError` while a shard is written, and `RunFolderError` where a log
        cannot be read, or nothing can be written.
        """
        shards, answered = self.path / SHARDS, set[str]()
        if not shards.is_dir():
            return frozenset()
        for lock in shards.glob("*.lock"):
            with self.locked(lock.stem):
                pass
        if self.has_shards:
            unmerged = {prediction.question: prediction for prediction in self.scan_unmerged()}
            with self.appending() as log:
                for key, prediction in unmerged.items():
                    log.append(prediction)
                    answered |= {key} if prediction.status is not Status.FAILED else set()
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
        return frozenset(answered)


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


def default_runs_dir() -> Path:
    """Return `$MEDEXAM_RUNS`, else `./runs`."""
    return Path(os.environ.get("MEDEXAM_RUNS") or "runs")


def run_paths(runs: Iterable[Path], runs_dir: Path) -> list[Path]:
    """Return each of `runs` as a path: itself if it exists, else the run in `runs_dir` that it means.

    MLflow's files and pages, which `runs/*` in a shell names too, are left out.
    """
    given = [*runs]
    paths = [path for path in given if not (_BYSTANDER.fullmatch(path.name) and path.exists())] or given
    return [run if run.exists() else _find_path(str(run), runs_dir) for run in paths]


def _find_path(run: str, runs_dir: Path) -> Path:
    """Find the run of that id in `runs_dir`, or in the folder before it; or the only one whose id or digest begins so.

    A path that does not exist is given back where no run is meant. Raises `RunFolderError` if several are, or if ids
    come near.
    """
    path = Path(run)
    if path.name != run and path.parent.is_dir():
        return _find_path(path.name, path.parent)
    if (runs_dir / run).exists() or not runs_dir.is_dir() or path.name != run:
        return runs_dir / run
    names = sorted(child.name for child in runs_dir.iterdir() if child.is_dir())
    matches = [name for name in names if name.startswith(run) or name.rpartition("-")[2].startswith(run)]
    if len(matches) > 1:
        remainder = f" and {len(matches) - _MOST_MATCHES} more" if len(matches) > _MOST_MATCHES else ""
        raise RunFolderError(
            f"{run} may be {len(matches)} runs in {runs_dir}: {', '.join(matches[:_MOST_MATCHES])}{remainder}; give "
            "more of the id, or the first digits behind its last hyphen"
        )
    if not matches and (suggestion := nearest(run, names, similarity=0.7)):
        raise RunFolderError(f"no run {run} in {runs_dir}: did you mean {suggestion}?")
    return runs_dir / (matches[0] if matches else run)


def find_run(run: str, runs_dir: Path) -> RunFolder:
    """Find the run that is meant by its folder, or by how its id or digest in `runs_dir` begins.

    Raises `RunFolderError` if there is none, or if several may be meant.
    """
    path = Path(run)
    # A link as itself: what is done to it must not be done to where it leads.
    folder = RunFolder(path.absolute() if path.is_symlink() else path.resolve())
    folder = folder if folder.exists() else RunFolder(_find_path(run, runs_dir))
    if folder.exists():
        return folder
    raise RunFolderError(f"no run {run} here or in {runs_dir}: give its folder or its id; `medexam list` shows them")


def find_runs(paths: Iterable[Path]) -> list[RunFolder]:
    """Find the run folders named by `paths`, each a run folder or a folder of them, in order and without repeats.

    Raises `RunFolderError` for a path that is neither.
    """
    folders_by_path: dict[Path, RunFolder] = {}
    for path in paths:
        folders = [RunFolder(path)] if RunFolder(path).exists() else runs_inside(path)
        if not folders:
            raise RunFolderError(f"no run at {path}: give a run folder, or a folder that holds run folders")
        folders_by_path.update({folder.path.resolve(): folder for folder in folders})
    return list(folders_by_path.values())


def runs_inside(path: Path) -> list[RunFolder]:
    """List the run folders in the folder `path`; none if it is no folder.

    Runs of one experiment stand together in the order of its spec, and experiments in the order in which they began.
    """
    folders = [RunFolder(child) for child in sorted(path.iterdir())] if path.is_dir() else []
    began: dict[str, str] = {}
    places = []
    for folder in filter(RunFolder.exists, folders):
        start_time, experiment, place = "", folder.name, 0
        with suppress(RunFolderError):
            start_time = str(folder.read_environment().get("started_at", ""))
        with suppress(RunFolderError):
            match folder.read_json(SPEC):
                case {"experiment_digest": str(digest), "place": int(position)}:
                    experiment, place = digest, position
        began[experiment] = min(start_time, began.get(experiment, start_time))
        places.append((experiment, place, folder))
    places.sort(key=lambda each: (began[each[0]], each[0], each[1]))
    return [folder for *_, folder in places]
