"""Stored runs and plans as Python has them: they show themselves as tables."""

from collections import UserDict
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa
import pyarrow.parquet as pq

from medexam.errors import RunFolderError
from medexam.experiments.api.asking import ask
from medexam.experiments.entry.carry_out import Carriers, plan_lines
from medexam.experiments.plan.cells import Plan
from medexam.experiments.plan.document import cells_table, plan_document
from medexam.experiments.plan.planner import plan_resume
from medexam.experiments.report.leaderboard import Leaderboard, make_leaderboard
from medexam.experiments.report.run_blocks import overview_blocks, pending_blocks, run_blocks
from medexam.experiments.report.shown import Block, Displayed
from medexam.experiments.run.spending import NO_LIMITS, Limits
from medexam.experiments.store.run_folder import PARQUET, RunFolder
from medexam.experiments.store.stored_run import StoredRun
from medexam.predictions import Prediction
from medexam.tables import Table

if TYPE_CHECKING:
    import pandas as pd


class Predictions(UserDict[str, Prediction]):
    """The last prediction of each question of a run, by the question's key; read when one is looked at first."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    @cached_property
    def data(self) -> dict[str, Prediction]:  # type: ignore[override]
        """The predictions."""
        predictions = self._folder.read_predictions()
        return {key: predictions[key] for key in self._folder.read_record().questions if key in predictions}

    def __repr__(self) -> str:
        return f"<{len(self)} predictions of {self._folder.name}; to_pandas() gives a table>"

    def to_arrow(self) -> pa.Table:
        """Read one row a question: exam, gold, answer, whether right, reply, tokens; `right` averages to the accuracy.

        Raises `RunFolderError` if the folder's `predictions.parquet` cannot be read.
        """
        path = self._folder.path / PARQUET
        try:
            return pq.read_table(path)
        except (OSError, pa.ArrowException) as error:
            raise RunFolderError(f"cannot read {path}: {error}; medexam.load_run writes it again") from None

    def to_pandas(self) -> "pd.DataFrame":
        """Convert `to_arrow` to a pandas data frame."""
        return self.to_arrow().to_pandas()


class Run(Displayed):
    """One stored run with its scores. It shows itself as a table."""

    def __init__(self, stored: StoredRun) -> None:
        self.stored = stored
        """The run as reports read it."""

    @property
    def id(self) -> str:
        """The name of its folder."""
        return self.stored.folder.name

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return self.stored.folder.path

    @property
    def program(self) -> str:
        """The program's short name."""
        return self.stored.program

    @property
    def model(self) -> str | None:
        """The model that really answered; None for a program that asks none."""
        return self.stored.model

    @property
    def metrics(self) -> Any:
        """All scores, as `metrics.json` holds them: `medexam.measures.Metrics` for questions with numbered options."""
        return self.stored.metrics

    @property
    def n(self) -> int:
        """Questions that are scored."""
        return self.stored.metrics.n

    @property
    def accuracy(self) -> float | None:
        """Right answers among the scored questions, 0 to 1; None if answers are more or less right."""
        right = self.stored.metrics.right
        return right / self.n if right is not None and self.n else None

    @property
    def complete(self) -> bool:
        """Whether every question is scored."""
        return self.stored.complete

    @property
    def predictions(self) -> Predictions:
        """What was answered: a mapping of question keys, with `to_pandas()`."""
        return Predictions(self.stored.folder)

    def resume(self, *, limits: Limits = NO_LIMITS, progress: bool = True) -> "Run":
        """Ask its pending questions, failed ones included, under its own spec; return the run as it is then."""
        if self.complete:
            return self
        plan = plan_resume(str(self.folder), runs_dir=self.folder.parent)
        runs, _ = ask(plan, Carriers(limits=limits), progress=progress, track=True)
        return Run(runs[0])

    def blocks(self) -> list[Block]:
        """Show the scores, with the breakdowns and details of `medexam report`."""
        return run_blocks(self.stored)

    def __repr__(self) -> str:
        accuracy = "" if self.accuracy is None else f", accuracy {100 * self.accuracy:.1f} %"
        return f"<Run {self.id}: {self.n} of {len(self.stored.record.questions)} questions scored{accuracy}>"


class Runs(Displayed, Collection[Run]):
    """Several runs. They show themselves side by side; one is found by its place, its program or its id."""

    def __init__(self, runs: list[Run], stop: str | None = None) -> None:
        self._runs = runs
        self.stop = stop
        """Why asking ended early, `interrupted` or `failures`; None if it did not."""

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __contains__(self, run: object) -> bool:
        return run in self._runs

    @overload
    def __getitem__(self, key: int | str) -> Run: ...

    @overload
    def __getitem__(self, key: slice) -> "Runs": ...

    def __getitem__(self, key: int | str | slice) -> "Run | Runs":
        if isinstance(key, slice):
            return Runs(self._runs[key])
        if isinstance(key, int):
            return self._runs[key]
        matches = [run for run in self._runs if key in (run.program, run.id)]
        if len(matches) != 1:
            names = ", ".join(run.id for run in matches or self._runs)
            raise KeyError(f"{key!r} names {'several runs' if matches else 'none of the runs'}: {names}")
        return matches[0]

    @property
    def complete(self) -> bool:
        """Whether every question of every run is scored."""
        return self.stop is None and all(run.complete for run in self)

    def board(self) -> Leaderboard:
        """Rank the models over the benchmarks of these runs, as `medexam board` does."""
        return make_leaderboard([run.stored for run in self])

    def blocks(self) -> list[Block]:
        """Show the overview of `medexam run`."""
        if not self._runs:
            return ["no runs"]
        runs = [run.stored for run in self]
        return [*overview_blocks(runs), *pending_blocks(runs)]


class RunPlan(Displayed):
    """What a run would do."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        """The plan as the runner takes it."""
        self.cells = plan_document(plan)
        """One entry a run, as `medexam plan --json` prints it, with the first question's `prompt`."""

    def blocks(self) -> list[Block]:
        """Show the runs with their questions and calls, then a prompt of each."""
        blocks: list[Block] = [cells_table(self.plan.name, self.cells)]
        for entry in self.cells:
            turns = tuple((turn["role"], turn["content"]) for turn in entry["prompt"])
            if turns:
                blocks.append(Table(f"First prompt: {entry['program']}", ("Role", "Text"), turns, text_columns=2))
        return blocks + list(plan_lines(self.plan))
