"""Pictures of a data set's statistics in the look of all pictures: questions, lengths, places of the right answer."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from medexam.experiments.report.dataset_statistics import Lengths, Statistics, TextLengths
from medexam.experiments.report.plots.style import CHANCE, MARKERS, PALETTE, WIDTH, Plot, chance_sample, legend_below

HEIGHT = 4.2
"""Inches of a picture."""
BAR = 0.8
"""Width of the bars of a place, where 1 is the distance to the next."""


def statistics_plots(statistics: Statistics) -> list[Plot]:
    """Plan the pictures of a data set, in the order in which they are best seen; by year where its exams have one."""
    about = f"{statistics.name} {statistics.language}, n = {statistics.questions:,} questions"
    questions = partial(_draw_lengths, text_kind="question", lengths_of=lambda lengths: lengths.questions)
    answers = partial(_draw_lengths, text_kind="answer", lengths_of=lambda lengths: lengths.answers)
    by_year = [
        ("questions_by_year", f"Questions by year and discipline of {about}.", _draw_exams),
        (
            "question_lengths",
            f"Mean length of the questions, without their options, by year and discipline: {about}.",
            questions,
        ),
        ("answer_lengths", f"Mean length of an option by year and discipline: {about}.", answers),
    ]
    places = f"Share of the questions whose right answer stands at each place, by number of options: {about}."
    pictures = [*(by_year if statistics.by_year else ()), ("right_answers", places, _draw_positions)]
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


def _draw_lengths(
    figure: Any, statistics: Statistics, text_kind: str, lengths_of: Callable[[TextLengths], Lengths]
) -> None:
    panels = figure.subplots(1, 2, sharex=True)
    years = list(statistics.by_year)
    entries: list[tuple[Any, str]] = []
    for axes, unit in zip(panels, ("words", "characters"), strict=True):
        entries = []
        for place, (discipline, groups) in enumerate(statistics.by_discipline_and_year.items()):
            means = [getattr(lengths_of(lengths), unit).mean for lengths in groups.values()]
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
        axes.set_ylabel(f"{unit} of {'a question' if text_kind == 'question' else 'an option'}, mean")
        axes.set_ylim(bottom=0)
    figure.suptitle(f"Length of {text_kind}s by year · {statistics.name} {statistics.language}")
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
    figure.suptitle(f"Where the right answer stands · {statistics.name} {statistics.language}")
    legend_below(figure, [(chance_sample(), "equally often")])


def _label_years(axes: Any, years: Sequence[int]) -> None:
    axes.set_xticks(range(len(years)), [str(year) for year in years])
    axes.grid(axis="y", alpha=0.3)
