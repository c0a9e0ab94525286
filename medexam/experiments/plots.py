"""Plots of stored runs: accuracy by discipline and by year, with intervals and the chance level, option scores
and the relevance of passages.

Needs matplotlib, which comes with the extra `plots`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from medexam.errors import MedExamError, RunFolderError
from medexam.experiments.retrieval_plots import draw_relevance, has_passages
from medexam.experiments.score_plots import draw_exam_score_by_threshold, draw_reliability, has_option_scores
from medexam.experiments.summary import StoredRun
from medexam.metrics import Metrics, Scores

Groups = Callable[[Metrics], Mapping[Any, Scores]]
Draw = Callable[[Any, Sequence[StoredRun]], None]
"""Draws runs on matplotlib axes."""
GROUPS: dict[str, Groups] = {
    "accuracy_by_discipline": lambda metrics: metrics.by_discipline,
    "accuracy_by_year": lambda metrics: metrics.by_year,
}
SCORE_PLOTS: dict[str, Draw] = {
    "reliability": draw_reliability,
    "exam_score_by_threshold": draw_exam_score_by_threshold,
}
RETRIEVAL_PLOTS: dict[str, Draw] = {"relevance": draw_relevance}
INCHES = {"reliability": (6.5, 7.0)}
"""Width and height where they are not those of `WIDE`."""
WIDE = (9.0, 4.5)
DPI = 150
SPREAD = 0.6
"""Width that the runs share around a group's place on the axis, where 1 is the distance between groups."""


def write_plots(runs: Sequence[StoredRun], folder: Path) -> list[Path]:
    """Write one PNG for each of `GROUPS` into `folder`.

    With those of `SCORE_PLOTS` where a run has option scores, and of `RETRIEVAL_PLOTS` where one has passages.

    The paths, in that order. Raises `MedExamError` without matplotlib and `RunFolderError` where `folder` cannot be
    written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MedExamError("plots need matplotlib: pip install 'medexam[plots]'") from None
    paths = []
    draws: dict[str, Draw] = {name: partial(_draw_accuracy, groups=groups) for name, groups in GROUPS.items()}
    if has_option_scores(runs):
        draws |= SCORE_PLOTS
    if has_passages(runs):
        draws |= RETRIEVAL_PLOTS
    for name, draw in draws.items():
        figure = Figure(figsize=INCHES.get(name, WIDE), dpi=DPI, layout="constrained")
        draw(figure.add_subplot(), runs)
        path = folder / f"{name}.png"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(path)
        except OSError as error:
            raise RunFolderError(f"cannot write {path}: {error}; choose another folder with --plots") from None
        paths.append(path)
    return paths


def _draw_accuracy(axes: Any, runs: Sequence[StoredRun], groups: Groups) -> None:
    names = sorted({name for run in runs for name in groups(run.metrics)})
    places = {name: place for place, name in enumerate(names)}
    for position, run in enumerate(runs):
        shift = SPREAD * ((position + 0.5) / len(runs) - 0.5)
        scored = [(places[name] + shift, group) for name, group in groups(run.metrics).items() if group.n]
        heights = [100 * (group.accuracy or 0.0) for _, group in scored]
        axes.errorbar(
            [place for place, _ in scored],
            heights,
            yerr=_error_bars([group for _, group in scored], heights),
            fmt="o",
            capsize=3,
            label=f"{run.title} (n = {run.metrics.n})",
        )
    for name, level in _chance(runs, groups).items():
        half = SPREAD / 2 + 0.1
        axes.hlines(100 * level, places[name] - half, places[name] + half, colors="0.4", linestyles="dotted")
    axes.plot([], [], color="0.4", linestyle="dotted", label="chance")
    axes.set_xticks(range(len(names)), [str(name) for name in names])
    axes.set_ylabel("accuracy, % (95 % interval)")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)
    axes.figure.legend(loc="outside lower center", ncols=1 if len(runs) < 3 else 2, fontsize="small", frameon=False)


def _error_bars(groups: Sequence[Scores], heights: Sequence[float]) -> list[list[float]]:
    """Distances from the accuracy down and up to the ends of its interval, percent."""
    intervals = [group.accuracy_interval or (0.0, 0.0) for group in groups]
    return [
        [max(0.0, height - 100 * low) for height, (low, _) in zip(heights, intervals, strict=True)],
        [max(0.0, 100 * high - height) for height, (_, high) in zip(heights, intervals, strict=True)],
    ]


def _chance(runs: Sequence[StoredRun], groups: Groups) -> dict[Any, float]:
    """The chance level of each group; runs on the same questions share it, and the first one's is drawn."""
    levels: dict[Any, float] = {}
    for run in runs:
        for name, group in groups(run.metrics).items():
            if group.chance_accuracy is not None:
                levels.setdefault(name, group.chance_accuracy)
    return levels
