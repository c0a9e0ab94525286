"""Plots of the report, drawn and written as pictures."""

from medexam.experiments.report.plots.corpus_map import CorpusMap, make_map
from medexam.experiments.report.plots.corpus_map_plot import draw_map_part
from medexam.experiments.report.plots.datasets import statistics_plots
from medexam.experiments.report.plots.pictures import PLOTS, PlotPicture, render_plot, write_pictures
from medexam.experiments.report.plots.style import Plot, looks

__all__ = [
    "PLOTS",
    "CorpusMap",
    "Plot",
    "PlotPicture",
    "draw_map_part",
    "looks",
    "make_map",
    "render_plot",
    "statistics_plots",
    "write_pictures",
]
