"""What an optimization shows on standard error meanwhile: a bar over the questions of its trials, a line a trial."""

from rich.progress import TaskID
from rich.text import Text

from medexam.experiments.entry.progress import WorkProgress
from medexam.experiments.optimize.meter import Meter
from medexam.experiments.optimize.optimization import Trial
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.predictions import Prediction


class TrialProgress(WorkProgress):
    """An `OptimizationObserver` that draws on standard error, and writes a line a trial."""

    def __init__(self, *, disable: bool = False) -> None:
        self._meter: Meter | None = None
        self._task: TaskID | None = None
        self._best: Trial | None = None
        self._in_flight = 0
        self._done = 0
        super().__init__(self._figures, disable=disable)

    def optimization_starts(self, plan: OptimizationPlan, meter: Meter) -> None:
        """Open the bar."""
        self._meter = meter
        total = plan.optimizer.asked_rounds * plan.candidates * len(plan.validation.question_set.questions)
        self._task = self._bars.add_task(f"{plan.optimizer.kind} {plan.cell.program.label}", total=total, note="")

    def trial_ends(self, trial: Trial) -> None:
        """Say how the program did."""
        if self._best is None or trial.score > self._best.score:
            self._best = trial
        self._say(f"trial {trial.number}, {trial.name}: {trial.right} of {trial.n} right")

    def asked(self) -> None:
        """Count a question as in flight."""
        self._in_flight += 1

    def answered(self, prediction: Prediction) -> None:  # noqa: ARG002
        """Move the bar."""
        self._in_flight -= 1
        self._done += 1
        if self._task is not None:
            self._bars.update(self._task, completed=self._done)

    def _figures(self) -> Text | None:
        """Draw what is spent, and the best so far."""
        if self._meter is None:
            return None
        limits, spent = self._meter.limits, self._meter.spent
        calls = f"{spent['calls']:,}" + (f" of {limits.max_calls:,}" if limits.max_calls else "")
        tokens = f"{spent['tokens']:,}" + (f" of {limits.max_tokens:,}" if limits.max_tokens else "")
        parts = [f"{calls} calls", f"{tokens} tokens", f"{self._in_flight} questions in flight"]
        if self._best is not None:
            parts.append(f"best so far: trial {self._best.number}, {self._best.right} right")
        return Text(" · ".join(parts), overflow="fold")
