"""Pictures of a data set's statistics in the look of all pictures: questions, lengths, places of the right answer."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from medexam.experiments.report.dataset_statistics import Statistics, TextLengths
from medexam.experiments.report.plots.style import CHANCE, MARKERS, PALETTE, WIDTH, Plot, chance_sample, legend_below

HEIGHT = 4.2
"""Inches of a picture."""
BAR = 0.8
"""Width of the bars of a place, where 1 is the distance to the next."""
BOX = "Boxes: the middle half and the median; lines: 5 to 95 %; diamonds: means."
MEAN = {"marker": "D", "markersize": 5, "markerfacecolor": "white", "markeredgecolor": "black"}


def statistics_plots(statistics: Statistics) -> list[Plot]:
    """Plan the pictures of a data set, in the order in which they are best seen; by year where its exams have one.

    `question_lengths` and `question_lengths_by_discipline` are figures 3 and 4 of Correa-Guillén et al. (2025).
    """
    about = f"{statistics.name} {statistics.language}, n = {statistics.questions:,} questions"
    by_year = [
        ("questions_by_year", f"Questions by year and discipline of {about}.", _draw_exams),
        (
            "question_lengths",
            f"Length of the questions, without their options, by year: {about}. {BOX}",
            partial(_draw_boxes, groups=statistics.by_year, group_name="year"),
        ),
        ("answer_lengths", f"Mean length of an option by year and discipline: {about}.", _draw_answer_lengths),
    ]
    by_discipline = (
        "question_lengths_by_discipline",
        f"Length of the questions, without their options, by discipline: {about}. {BOX}",
        partial(_draw_boxes, groups=statistics.by_discipline, group_name="discipline"),
    )
    places = f"Share of the questions whose right answer is at each place, by number of options: {about}."
    pictures = [*(by_year if statistics.by_year else ()), by_discipline, ("right_answers", places, _draw_positions)]
    return [
        Plot(name, caption, (WIDTH, HEIGHT), partial(draw, statistics=statistics)) for name, caption, draw in pictures
    ]


def _draw_exams(figure: Any, statistics: Statistics) -> None:
    axes = figure.subplots()
    years = list(statistics.by_year)
    floor = [0] * len(years)
    entries = []
    for place, (discipline, counts) in enumerate(statistics.by_exam.items()):
        heights = [counts.get(year, 0) for year in years]
        bars = axes.bar(range(len(years)), heights, BAR, bottom=floor, color=PALETTE[place % len(PALETTE)])
        floor = [low + height for low, height in zip(floor, heights, strict=True)]
        entries.append((bars, f"{discipline} (n = {sum(counts.values()):,})"))
    _label_years(axes, years)
    axes.set_ylabel("questions")
    figure.suptitle(f"Questions by year and discipline · {statistics.name} {statistics.language}")
    legend_below(figure, entries)


def _draw_boxes(figure: Any, statistics: Statistics, groups: Mapping[Any, TextLengths], group_name: str) -> None:
    panels = figure.subplots(1, 2)
    names = [str(name) for name in groups]
    for axes, unit in zip(panels, ("words", "characters"), strict=True):
        boxes = []
        for lengths in groups.values():
            spread = getattr(lengths.questions, unit)
            low, lower, middle, upper, high = spread.quantiles
            box = {"whislo": low, "q1": lower, "med": middle, "q3": upper, "whishi": high, "mean": spread.mean}
            boxes.append(box | {"fliers": ()})
        drawn = axes.bxp(boxes, showmeans=True, showfliers=False, patch_artist=True, meanprops=MEAN)
        for box_patch in drawn["boxes"]:
            box_patch.set(facecolor=PALETTE[0], alpha=0.5)
        for line in drawn["medians"]:
            line.set(color="black")
        axes.set_xticks(range(1, len(names) + 1), names, rotation=45 if group_name == "discipline" else 0, ha="center")
        axes.set_ylabel(f"{unit} of a question")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", alpha=0.3)
    figure.suptitle(f"Length of questions by {group_name} · {statistics.name} {statistics.language}")


def _draw_answer_lengths(figure: Any, statistics: Statistics) -> None:
    panels = figure.subplots(1, 2, sharex=True)
    years = list(statistics.by_year)
    entries: list[tuple[Any, str]] = []
    for axes, unit in zip(panels, ("words", "characters"), strict=True):
        entries = []
        for place, (discipline, groups) in enumerate(statistics.by_discipline_and_year.items()):
            means = [getattr(lengths.answers, unit).mean for lengths in groups.values()]
            (line,) = axes.plot(
                [years.index(year) for year in groups],
                means,
                color=PALETTE[place % len(PALETTE)],
                marker=MARKERS[place % len(MARKERS)],
                markersize=5,
                linewidth=1.5,
            )
            entries.append((line, discipline))
        _label_years(axes, years)
        axes.set_ylabel(f"{unit} of an option, mean")
        axes.set_ylim(bottom=0)
    figure.suptitle(f"Length of answers by year · {statistics.name} {statistics.language}")
    legend_below(figure, entries)


def _draw_positions(figure: Any, statistics: Statistics) -> None:
    panels = figure.subplots(1, len(statistics.positions), squeeze=False, sharey=True)[0]
    for axes, group in zip(panels, statistics.positions, strict=True):
        shares = [100 * right / group.n for right in group.right]
        axes.bar(range(1, group.options + 1), shares, BAR, color=PALETTE[0])
        axes.axhline(100 / group.options, **CHANCE)
        axes.set_xticks(range(1, group.options + 1))
        axes.set_xlabel("place of the right answer")
        axes.set_title(f"{group.options} options, n = {group.n:,}, p = {group.p:.2g}")
    panels[0].set_ylabel("questions, %")
    figure.suptitle(f"Place of the right answer · {statistics.name} {statistics.language}")
    legend_below(figure, [(chance_sample(), "equally often")])


def _label_years(axes: Any, years: Sequence[int]) -> None:
    axes.set_xticks(range(len(years)), [str(year) for year in years])
    axes.grid(axis="y", alpha=0.3)
