"""A run's progress as `tqdm` shows it: one bar a run, in a terminal and in a notebook alike."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tqdm.auto import tqdm

from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.store.stored_run import AnyRun
from medexam.predictions import Prediction, Status
from medexam.specs import ModelSpec
from medexam.text import count_of


class WorkBar:
    """A bar that is drawn during work; with `disable` nothing is shown."""

    def __init__(self, *, disable: bool = False) -> None:
        self._disable = disable
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def engine_starts(self, model: ModelSpec) -> None:
        """Say that a model is being loaded or a server probed."""
        self._say(f"Preparing {model.label} ...")

    def stopping(self, in_flight: int) -> None:
        """Say that the interrupt was heard."""
        self._say(
            f"Stopping: waiting a few seconds for {count_of(in_flight, 'question')} in flight; "
            "the next interrupt stops at once"
        )

    def _open(self, label: str, total: int | None, initial: int = 0) -> None:
        self._close()
        self._bar = tqdm(desc=label, total=total, initial=initial, disable=self._disable)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None

    def _say(self, line: str) -> None:
        if not self._disable:
            tqdm.write(line)


class ProgressBar(WorkBar):
    """A `RunObserver` that draws a bar for each run."""

    def __init__(self, *, disable: bool) -> None:
        super().__init__(disable=disable)
        self._is_right: Callable[[Prediction], bool] | None = None
        self._bars: dict[str, Any] = {}
        """Id of a run -> its bar; a run that is asked in blocks keeps one."""
        self._right = 0
        self._failed = 0

    def retrieval_starts(self, planned: AnyCell) -> None:
        """Say that passages are being looked up."""
        self._say(f"Looking up passages for {planned.label} ...")

    def passages_encoded(self, planned: AnyCell, count: int) -> None:
        """Show how far the corpus is encoded."""
        total = planned.retrieval.size if planned.retrieval is not None else None
        if self._bar is None and count < (total or 0):
            self._open("Encoding the corpus", total)
        if self._bar is not None:
            self._bar.update(count - self._bar.n)

    def cell_starts(self, planned: AnyCell) -> None:
        """Open the run's bar, or go on with it."""
        # Once: it looks at every question of the cell.
        self._is_right, self._right, self._failed = planned.is_right, planned.right, 0
        self._bar = self._bars.get(planned.run_id)
        if self._bar is None:
            self._open(planned.label, planned.total, planned.done)
            self._bars[planned.run_id] = self._bar

    def asked(self) -> None:
        """Show nothing before the answer."""

    def answered(self, prediction: Prediction) -> None:
        """Move the bar, and say how many are right so far."""
        if self._bar is None:
            return
        self._bar.update()
        is_right = self._is_right
        self._failed += prediction.status is Status.FAILED
        figures: dict[str, str | int] = {"failed": self._failed} if self._failed else {}
        if is_right is not None and prediction.status is not Status.FAILED:
            self._right += is_right(prediction)
        if is_right is not None and (scored := self._bar.n - self._failed):
            figures["accuracy"] = f"{100 * self._right / scored:.1f} %"
        self._bar.set_postfix(figures, refresh=False)

    def cell_ends(self, run: AnyRun) -> None:
        """Close the run's bar."""
        self._bar = self._bars.pop(run.record.run_id, self._bar)
        self._close()
