"""A score over dated runs: one line for each strategy, model and data set, as continuous integration collects them.

A step from run to run is no test: `medexam compare` tests two runs on the same questions.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.report.shown import Block, Displayed
from medexam.experiments.store.stored_run import AnyRun
from medexam.metrics.results import Interval
from medexam.tables import NONE, Table, amount, percent, with_interval

_COUNTS = {"selected", "n", "right", "wrong", "unanswered", "failed", "missing"}
_SHARES = {"accuracy", "exam_score"}
"""Measures that are fractions of 1 and shown in percent."""


@dataclass(frozen=True)
class TrendPoint:
    """One run's score."""

    run_id: str
    run_dir: str
    date: str
    """When the run was last asked, in ISO 8601; of an imported run, when it was imported."""
    value: float
    interval: Interval | None
    """95 %; None if the measure has none."""
    n: int
    """Questions scored."""
    questions: str
    """Digest of the questions that were asked, by which runs on others are told apart."""
    commit: str | None
    """The commit that the run was asked at; None outside a repository."""


@dataclass(frozen=True)
class TrendLine:
    """The runs of one strategy, model and data set, the earliest first."""

    name: str
    points: tuple[TrendPoint, ...]

    @property
    def steps(self) -> list[float | None]:
        """Each value minus the one before; None for the first, and if the questions are others."""
        pairs = zip(self.points, self.points[1:], strict=False)
        return [None, *(b.value - a.value if a.questions == b.questions else None for a, b in pairs)]


@dataclass(frozen=True, repr=False)
class Trend(Displayed):
    """The lines of all runs, in the order of their first."""

    measure: str
    lines: tuple[TrendLine, ...]

    def written(self, value: float | None, *, signed: bool = False) -> str:
        """Format a value as tables show it: percent for shares."""
        if value is None:
            return NONE
        text = percent(value) if self.measure in _SHARES else amount(value)
        return f"+{text}" if signed and value > 0 else text

    def document(self) -> dict[str, Any]:
        """Return what `--json` prints; fractions of 1, dates in ISO 8601."""
        return {
            "measure": self.measure,
            "lines": [
                {
                    "name": line.name,
                    "points": [
                        {**asdict(point), "step": step} for point, step in zip(line.points, line.steps, strict=True)
                    ],
                }
                for line in self.lines
            ],
        }

    def blocks(self) -> list[Block]:
        """Build a table for each line."""
        unit = ", %" if self.measure in _SHARES else ""
        headers = ("Date", "Run", "Commit", "n", self.measure.replace("_", " ").capitalize() + unit, "Step")
        return [(Table(line.name, headers, self._rows(line), text_columns=3), _CAPTION) for line in self.lines]

    def _rows(self, line: TrendLine) -> tuple[tuple[str, ...], ...]:
        is_share = self.measure in _SHARES
        return tuple(
            (
                point.date[:16].replace("T", " "),
                point.run_id,
                (point.commit or NONE)[:7],
                f"{point.n:,}",
                with_interval(self.written(point.value), point.interval if is_share else None),
                self.written(step, signed=True),
            )
            for point, step in zip(line.points, line.steps, strict=True)
        )


_CAPTION = (
    "In brackets 95 % intervals. Step: the change since the run before; none if it was asked other questions. "
    "`medexam compare` tests a step."
)


def find_trend(runs: Sequence[AnyRun], measure: str | None = None) -> Trend:
    """Find the scores of dated runs; `measure` is a name of MLflow's metrics, None the benchmark's first.

    Raises `SpecError` if no run has it.
    """
    run_values = [(run, run.benchmark.values(run.metrics)) for run in runs if run.metrics.n]
    names = list(dict.fromkeys(name for _, values in run_values for name in values if name not in _COUNTS))
    measure_name = measure or ("accuracy" if "accuracy" in names else next(iter(names), None))
    if measure_name is None:
        raise SpecError("no run has scored a question, so there is no trend: run their specs again")
    lines: dict[str, list[TrendPoint]] = {}
    for run, values in run_values:
        if measure_name in values:
            lines.setdefault(run.title, []).append(_point(run, measure_name, values[measure_name]))
    if not lines:
        raise SpecError(f"--measure {measure_name}: no run has it; the runs have {', '.join(names[:12])}")
    trend_lines = (TrendLine(name, tuple(sorted(points, key=_place))) for name, points in lines.items())
    return Trend(measure_name, tuple(trend_lines))


def _place(point: TrendPoint) -> tuple[str, str]:
    return point.date, point.run_id


def _point(run: AnyRun, measure: str, value: float) -> TrendPoint:
    environment = run.environment
    keys = "\n".join(sorted(run.record.questions))
    return TrendPoint(
        run_id=run.record.run_id,
        run_dir=str(run.folder.path.resolve()),
        date=str(environment.get("ended_at") or environment.get("started_at") or ""),
        value=value,
        interval=getattr(run.metrics, f"{measure}_interval", None),
        n=run.metrics.n,
        questions=hashlib.sha256(keys.encode()).hexdigest()[:12],
        commit=environment.get("git_commit"),
    )
