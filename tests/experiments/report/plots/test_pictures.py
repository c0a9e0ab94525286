"""Pictures of real runs of the shipped sample: which are drawn, what their captions say, and that labels keep apart."""

import dataclasses
import struct
import sys
from collections import Counter

import pyarrow.parquet as pq
import pytest
import yaml

from medexam.errors import MedExamError
from medexam.experiments import Runner, build_pictures, find_runs, plan_experiment, rescore
from medexam.experiments.compare.flows import FlowMark, find_flows
from medexam.experiments.report.plots.flips import draw_flow, flips_plot
from medexam.experiments.report.plots.page_svg import render_svg
from medexam.experiments.report.plots.pictures import PLOTS, render_figure, render_plot
from medexam.experiments.report.plots.strategies import strategies_plot
from medexam.experiments.report.plots.style import Plot, RunStyle, by_model, looks
from medexam.experiments.report.plots.years import years_plot
from medexam.experiments.store.run_folder import PARQUET
from watching import Silent

SPEC = """
name: controls
dataset: {name: headqa_sample}
matrix:
  dataset.language: [en, es]
  program: [{kind: random}, {kind: longest}, {kind: blind, option: 5}]
"""
ZERO_SHOT, GUIDED = {"kind": "zero_shot"}, {"kind": "zero_shot", "answer_format": "guided"}
LONG = "meta-llama/A-Model-Whose-Name-Is-Much-Longer-Than-Any-Column-Of-Any-Picture-v0.3-Instruct"


@pytest.fixture(scope="module")
def controls(tmp_path_factory):
    """Six real runs: three controls in two languages; `blind` leaves questions without a fifth option blank."""
    plan = plan_experiment(yaml.safe_load(SPEC), {}, runs_dir=tmp_path_factory.mktemp("controls"))
    runs, stop = Runner(plan, Silent()).run()
    assert stop is None
    return [rescore(each) for each in find_runs([run.folder.path for run in runs])]


def _named(runs, *names):
    return [run for name in names for run in runs if f"{run.program} {run.record.cell.dataset.language}" == name]


def _size(png: bytes) -> tuple[int, int]:
    """Width and height as the PNG's header gives them."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", png[16:24])


def test_every_picture_says_how_many_questions_and_what_the_bars_are(controls) -> None:
    pictures = build_pictures(controls)
    names = [picture.name for picture in pictures]
    assert names == ["strategies", "accuracy_by_year", "accuracy_by_discipline", "flips"]
    for picture in pictures:
        width, height = _size(picture.png)
        assert 900 <= width <= 1500
        assert 300 <= height <= 1500
        assert "n = 120 " in picture.caption
        assert "95 % interval" in picture.caption
        assert picture.caption.encode() in picture.png


def test_one_run_has_no_flips(controls) -> None:
    (picture, *_), names = build_pictures(controls[:1]), [each.name for each in build_pictures(controls[:1])]
    assert "n = 120 questions;" in picture.caption
    assert names == ["strategies", "accuracy_by_year", "accuracy_by_discipline"]


def test_counts_that_differ_are_a_range(make_run) -> None:
    (picture, *_) = build_pictures([make_run(ZERO_SHOT, "r"), make_run(GUIDED, "rmmw")])
    assert "n = 10 to 20 questions a run" in picture.caption


def test_a_run_without_a_scored_question_draws_nothing(make_run) -> None:
    assert build_pictures([make_run(ZERO_SHOT, "f")]) == []
    both = build_pictures([make_run(GUIDED, "m"), make_run({"kind": "longest"}, "rw")])
    assert [picture.name for picture in both] == ["strategies", "accuracy_by_year", "accuracy_by_discipline"]


def test_flows_sum_to_n_and_agree_with_the_stored_answers(controls) -> None:
    runs = _named(controls, "blind-5 en", "longest en", "random es")
    flows = find_flows(runs)
    assert [flow.after.program for flow in flows] == ["longest", "random"]
    for flow, run in zip(flows, runs[1:], strict=True):
        marks = [
            {
                row["question"]: "unanswered" if row["status"] == "unanswered" else "right" if row["right"] else "wrong"
                for row in pq.read_table(each.folder.path / PARQUET).to_pylist()
            }
            for each in (runs[0], run)
        ]
        counted = Counter((marks[0][question], marks[1][question]) for question in marks[0])
        assert {(a.value, b.value): count for (a, b), count in flow.counts.items()} == counted
        assert flow.n == sum(counted.values()) == 120
        for part in FlowMark:
            before = sum(count for band, count in flow.counts.items() if band[0] is part)
            assert before == getattr(runs[0].metrics, part.value)
        gained = run.metrics.right - runs[0].metrics.right
        assert flow.accuracy.value == pytest.approx(gained / 120)


def test_flows_need_questions_in_common(controls, make_run) -> None:
    assert find_flows(controls[:1]) == []
    # The questions of these runs are in no data set on the disk.
    assert find_flows([make_run(ZERO_SHOT, "r"), make_run(GUIDED, "r")]) == []
    other = controls[1].record.cell.model_copy(
        update={"dataset": controls[1].record.cell.dataset.model_copy(update={"name": "headqa_v1"})}
    )
    apart = dataclasses.replace(controls[1], record=dataclasses.replace(controls[1].record, cell=other))
    assert find_flows([controls[0], apart]) == []


def test_bands_fill_both_bars(controls) -> None:
    from matplotlib.figure import Figure

    (flow,) = find_flows(_named(controls, "blind-5 en", "random en"))
    axes = Figure().add_subplot()
    draw_flow(axes, flow, "A to B")
    bars = [patch for patch in axes.patches if hasattr(patch, "get_height")]
    assert sum(bar.get_height() for bar in bars) == pytest.approx(2)
    texts = [text.get_text() for text in axes.texts]
    assert all(f"{count:,}" in texts for count in flow.counts.values())
    assert f"unanswered\n{flow.before.metrics.unanswered}" in texts


def test_models_have_panels_of_their_own_and_strategies_look_alike_in_each(controls) -> None:
    def asking(run, name):
        cell = run.record.cell.model_copy(update={"program": _zero_shot()})
        return dataclasses.replace(
            run,
            record=dataclasses.replace(run.record, cell=cell),
            environment={**run.environment, "engine": {"model": name}},
        )

    en = _named(controls, "longest en", "random en")
    drawn = looks([*en, asking(en[0], "a/One"), asking(en[1], "b/Two"), *_named(controls, "blind-5 en")])
    groups = by_model(drawn)
    assert list(groups) == ["One", "Two", None]
    one, two = groups["One"][0], groups["Two"][0]
    assert (one.name, one.color, one.marker) == (two.name, two.color, two.marker)
    assert len({look.color for look in groups[None]} | {one.color}) == 4
    figure = _drawn(years_plot(drawn))
    assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == ["One", "Two", "no model asked"]
    assert len(figure.legends[0].get_texts()) == 5


def _zero_shot():
    from medexam.specs import ZeroShotSpec

    return ZeroShotSpec(kind="zero_shot")


def _drawn(plot):
    """The figure of a plot, laid out."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=plot.size, dpi=100, layout="constrained")
    plot.draw(figure)
    FigureCanvasAgg(figure).draw()
    return figure


@pytest.fixture
def overlaps(monkeypatch):
    """`overlaps(plot)`: pairs of drawn texts that lie over each other, and texts that leave the picture."""
    from matplotlib.text import Text

    def find(plot) -> list[tuple[str, str]]:
        drawn: dict[int, Text] = {}
        draw = Text.draw

        def record(text, renderer, *rest, **settings):
            if text.get_visible() and text.get_text().strip():
                drawn[id(text)] = text
            return draw(text, renderer, *rest, **settings)

        with monkeypatch.context() as patched:
            patched.setattr(Text, "draw", record)
            figure = _drawn(plot)
        renderer = figure.canvas.get_renderer()
        boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in drawn.values()]
        assert len(boxes) > 5
        across, up = figure.get_size_inches() * figure.dpi
        found = [
            (words, "the edge")
            for words, box in boxes
            if box.x0 < -1 or box.y0 < -1 or box.x1 > across + 1 or box.y1 > up + 1
        ]
        # Lines of one text may touch those of another, but letters may not.
        shrunk = [(words, box.shrunk(0.98, 0.85)) for words, box in boxes]
        return found + [
            (mine, its)
            for place, (mine, box) in enumerate(shrunk)
            for its, other in shrunk[place + 1 :]
            if box.overlaps(other)
        ]

    return find


@pytest.mark.parametrize("count", [1, 2, 5, 10])
def test_labels_keep_apart(make_run, overlaps, count) -> None:
    outcomes = ["rrw", "rw", "rwwu", "wwr", "ru"]
    runs = [
        make_run(
            [ZERO_SHOT, GUIDED, {"kind": "chain_of_thought"}, {"kind": "longest"}, {"kind": "random"}][place % 5],
            outcomes[place % 5],
            language="en" if place < 5 else "es",
            model={"engine": "litellm", "name": LONG},
        )
        for place in range(count)
    ]
    plots = [plot for build in PLOTS.values() if (plot := build(looks(runs))) is not None]
    assert len(plots) == 4
    for plot in plots:
        assert overlaps(plot) == [], plot.name


def test_labels_of_flips_keep_apart(controls, overlaps) -> None:
    assert overlaps(flips_plot(looks(controls))) == []


def test_numbers_beside_the_points_are_the_metrics(controls) -> None:
    figure = _drawn(strategies_plot(looks(controls)))
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    for run in controls:
        low, high = run.metrics.accuracy_interval
        assert f"{100 * run.metrics.accuracy:.1f}\n[{100 * low:.1f}, {100 * high:.1f}]" in texts


def test_ten_runs_are_told_apart_without_colour(controls) -> None:
    drawn: list[RunStyle] = looks([controls[0]] * 10)
    assert len({(look.color, look.line) for look in drawn}) == 10
    assert len({look.marker for look in drawn}) == 10


def test_any_name_is_drawn_and_nothing_is_said(recwarn) -> None:
    name = "\x00 \x1b[31m \u202e \ufffe $\\frac$ 日 <b>"
    plot = Plot("any", "Any.", (4, 3), lambda figure: figure.add_subplot().set_title(name))
    assert render_plot(plot).png
    assert "\\x00 \\x1b[31m \\u202e \\ufffe $\\frac$ 日 &lt;b&gt;" in render_svg(plot)
    assert not recwarn.list


def test_pictures_need_matplotlib(controls, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MedExamError, match=r"pip install 'medexam\[plots\]'"):
        build_pictures(controls)


def test_a_caption_goes_into_the_file() -> None:
    png = render_figure(lambda figure: None, (2, 1), "Scores of n = 30 questions.")
    assert b"Scores of n = 30 questions." in png
    assert b"Description" not in render_figure(lambda figure: None, (2, 1))
