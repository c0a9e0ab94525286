"""What an optimization shows on standard error meanwhile: a bar over the questions of its trials, a line a trial."""

from rich.progress import TaskID

from medexam.experiments.entry.progress import Bars
from medexam.experiments.optimize.meter import Meter
from medexam.experiments.optimize.optimization import Optimization, Trial


class TrialProgress(Bars):
    """Draws on standard error, and writes a line a trial."""

    def __init__(self, *, disable: bool = False) -> None:
        self._begun: tuple[Optimization, Meter, TaskID] | None = None
        super().__init__(disable=disable)

    def begin(self, optimization: Optimization, meter: Meter) -> None:
        """Open the bar."""
        spec = optimization.optimizer
        total = (spec.rounds if spec.kind == "copro" else 1) * optimization.candidates * optimization.validation
        task = self.add_task(f"{spec.kind} {optimization.cell.program.label}", total=total, note="")
        self._begun = optimization, meter, task

    def answered(self) -> None:
        """Move the bar by a question."""
        if self._begun is not None:
            self.advance(self._begun[2])

    def trial_ends(self, trial: Trial) -> None:
        """Say how the program did."""
        self.say(f"trial {trial.number}, {trial.name}: {trial.right} of {trial.n} right")

    def figures(self) -> str:
        """Draw what is spent, and the best so far."""
        if self._begun is None:
            return ""
        optimization, meter, _ = self._begun
        parts = [
            f"{meter.spent[name]:,}{f' of {limit:,}' if limit else ''} {name}"
            for name, limit in (("calls", meter.limits.max_calls), ("tokens", meter.limits.max_tokens))
        ]
        if (best := optimization.best) is not None:
            parts.append(f"best so far: trial {best.number}, {best.right} right")
        return " · ".join(parts)
