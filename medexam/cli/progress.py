"""What a run shows on standard error while it goes on: a bar for each cell, and one for an index that it makes."""

import sys
from types import TracebackType
from typing import Self

from rich.progress import TaskID

from medexam.cli.bars import EncodingProgress, open_bars
from medexam.experiments.planning import PlannedCell
from medexam.experiments.summary import StoredRun
from medexam.predictions import Prediction, Status
from medexam.specs import ModelSpec


class TerminalProgress:
    """A `RunObserver` that draws on standard error; without a terminal it writes a line for each run."""

    def __init__(self) -> None:
        self._progress = open_bars()
        self._console = self._progress.console
        self._task: TaskID | None = None
        self._failed = 0
        self._encoding: EncodingProgress | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def engine_starts(self, model: ModelSpec) -> None:
        """Say that a model is being loaded or a server probed."""
        where = f" at {', '.join(model.endpoints)}" if model.endpoints else ""
        self._console.print(f"Preparing {model.label} ({model.engine}){where} ...", highlight=False)

    def retrieval_starts(self, planned: PlannedCell) -> None:
        """Say that passages are being looked up."""
        self._console.print(f"Looking up passages for {planned.label} ...", highlight=False)
        self._encoding = None

    def passages_encoded(self, planned: PlannedCell, done: int) -> None:
        """Move the bar of the index that is being made."""
        if planned.retrieval is None or planned.retrieval.size is None:
            return
        if self._encoding is None:
            self._encoding = EncodingProgress(self._progress, "Encoding the corpus", planned.retrieval.size)
        self._encoding(done)

    def cell_starts(self, planned: PlannedCell) -> None:
        """Open a bar for the cell."""
        total = len(planned.exam_set.questions)
        self._failed = 0
        self._task = self._progress.add_task(planned.label, total=total, completed=total - len(planned.owed), note="")

    def answered(self, prediction: Prediction) -> None:
        """Move the cell's bar."""
        if self._task is None:
            return
        if prediction.status is Status.FAILED:
            self._failed += 1
        self._progress.update(self._task, advance=1, note=f"{self._failed} failed" if self._failed else "")

    def cell_ends(self, run: StoredRun) -> None:
        """Without a terminal, say that the run is on disk."""
        if not self._console.is_terminal:
            sys.stderr.write(f"{run.record.run_id}: {run.metrics.n} of {len(run.record.questions)} questions\n")
