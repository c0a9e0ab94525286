"""Plots of the report, drawn and written as pictures."""

from medexam.experiments.report.plots.datasets import statistics_plots
from medexam.experiments.report.plots.pictures import PLOTS, PlotPicture, render_plot, write_pictures
from medexam.experiments.report.plots.style import Plot, looks
from medexam.library_logging import quiet_matplotlib

__all__ = [
    "PLOTS",
    "Plot",
    "PlotPicture",
    "looks",
    "quiet_matplotlib",
    "render_plot",
    "statistics_plots",
    "write_pictures",
]
