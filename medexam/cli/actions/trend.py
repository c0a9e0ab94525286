"""What `medexam trend` does: find a score over dated runs, and show it."""

from pathlib import Path

from medexam.cli.terminal import Terminal
from medexam.cli.views.output import print_json
from medexam.cli.views.runs import print_notice, read_current
from medexam.experiments.report.plots.pictures import render_plot, write_pictures
from medexam.experiments.report.plots.trend import trend_plot
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.report.trend import find_trend
from medexam.experiments.store.paths import default_runs_dir, run_paths
from medexam.experiments.store.run_folder import find_runs


def show_trend(
    runs: list[Path] | None, measure: str | None, plots: Path | None, runs_dir: Path | None, *, as_json: bool
) -> None:
    """Show a score over dated runs, a line for each strategy, model and data set; asks no model."""
    root = runs_dir or default_runs_dir()
    score_trend = find_trend(read_current(find_runs(run_paths(runs, root) if runs else [root])), measure)
    if plots is not None:
        for path in write_pictures([render_plot(trend_plot(score_trend))], plots, "--plots"):
            print_notice(f"wrote {path}")
    if as_json:
        print_json(score_trend.document())
    else:
        print_blocks(Terminal(), score_trend.blocks())
