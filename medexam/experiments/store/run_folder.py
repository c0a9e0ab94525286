"""A run folder: the truth about one run, readable without this package.

`spec.json` says what was asked for, `environment.json` what really ran, `predictions.jsonl` holds one line per
answered question in the order of finishing, and `metrics.json`, `report.md` and `predictions.parquet` are made from
them. This module reads and writes those files; it knows nothing of models, metrics or MLflow.
"""

import os
import shlex
import shutil
import sys
from collections import ChainMap
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from medexam.datasets.examples import EXAMPLES_FILE
from medexam.errors import RunBusyError, RunFolderError
from medexam.experiments.store.log_lines import check_file
from medexam.experiments.store.prediction_lines import PredictionLog, StoredPredictions, open_log, scan_predictions
from medexam.experiments.store.shards import SHARDS, check_at_rest, find_unmerged, remove_shards, scan_shards
from medexam.experiments.store.work_folder import WorkFolder, describe_fault
from medexam.predictions import Prediction, Status
from medexam.predictions.core import Outcome
from medexam.predictions.prediction import Answered
from medexam.questions import AnySet
from medexam.specs import CellSpec
from medexam.specs.dataset import EXAMPLES, STORED
from medexam.specs.identity import IDENTITY_SCHEMA

SPEC = "spec.json"
ENVIRONMENT = "environment.json"
PREDICTIONS = "predictions.jsonl"
PARQUET = "predictions.parquet"
METRICS = "metrics.json"
REPORT = "report.md"


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

    def read_predictions(self, keys: Container[str] | None = None) -> dict[str, Prediction]:
        """Read the last prediction of each question, or of `keys`, by key, those of shards that are not merged yet too.

        A torn last line, left by a process that was killed while writing, counts as not written. A line that is
        damaged anywhere else, or belongs to another run, raises `RunFolderError`.
        """
        predictions = {each.question: each for each in self.scan_predictions() if keys is None or each.question in keys}
        unmerged = self._unmerged()
        return predictions | {key: each for key, each in unmerged.items() if keys is None or key in keys}

    def read_outcomes(self, *, with_shards: bool = True) -> dict[str, Outcome]:
        """Read how each question last came out, by key, shards that are not merged yet included if `with_shards`.

        Raises as `read_predictions` does.
        """
        pool: dict[Outcome, Outcome] = {}
        outcomes = {}
        for prediction in self.scan_predictions():
            outcome = Outcome(prediction.status, prediction.answer)
            outcomes[prediction.question] = pool.setdefault(outcome, outcome)
        for prediction in self._scan_shards() if with_shards else ():
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

    def merge_shards(self) -> frozenset[str]:
        """Put what workers left in shards into `predictions.jsonl`, and return the keys of the questions that it
        answers.

        The folder must be locked. Raises `RunBusyError` while a shard is written, and `RunFolderError` where a line is
        damaged or belongs to another run, or where nothing can be written.
        """
        check_at_rest(self.path)
        shard_predictions = self._unmerged()
        if shard_predictions:
            with self.appending() as log:
                for prediction in shard_predictions.values():
                    log.append(prediction)
        remove_shards(self.path)
        return frozenset(key for key, prediction in shard_predictions.items() if prediction.status is not Status.FAILED)

    @contextmanager
    def opened_predictions(self, *, prompts: bool = True) -> Iterator[Mapping[str, Prediction]]:
        """Yield what `read_predictions` gives, read from the disk at each look, for runs of any size.

        Without `prompts`, calls of a large run are without what was sent.
        """
        path = self.path / PREDICTIONS
        unmerged = self._unmerged()
        try:
            check_file(path)
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            yield unmerged
            return
        except OSError as error:
            raise RunFolderError(f"cannot read {path}: {error}") from None
        try:
            stored = StoredPredictions(path, descriptor, self._own_digest(), prompts=prompts)
            # A `ChainMap` takes mappings to write to; nobody writes to this one.
            yield ChainMap(unmerged, cast("MutableMapping[str, Prediction]", stored)) if unmerged else stored
        finally:
            os.close(descriptor)

    def _own_digest(self) -> str:
        return self.spec_digest or self.read_record().spec_digest

    def _unmerged(self) -> dict[str, Prediction]:
        """Find what the shards hold and `predictions.jsonl` does not."""
        if not (self.path / SHARDS).exists():
            return {}
        return find_unmerged(self._scan_shards(), self.scan_predictions())

    def _scan_shards(self) -> Iterable[Prediction]:
        return scan_shards(self.path, self._own_digest()) if (self.path / SHARDS).exists() else ()

    def scan_predictions(self) -> Iterator[Prediction]:
        """Yield every line of `predictions.jsonl`, in the order of writing; raises as `read_predictions` does."""
        path = self.path / PREDICTIONS
        if path.exists():
            yield from (prediction for _, prediction in scan_predictions(path, self._own_digest()))

    def appending(self) -> AbstractContextManager[PredictionLog]:
        """Open a log that appends predictions; what a dead process left torn is cut off first."""
        return open_log(self.path / PREDICTIONS, keeps_prompts=not self.exists() or self.read_record().keeps_items)


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
