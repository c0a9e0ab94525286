"""The picture of flips: bands from what became of each question in the first run to what became of it in another.

One panel for each further run. A band's width is its number of questions, and bands that change colour are flips.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from medexam.benchmarks.resampling import describe_resampling
from medexam.experiments.compare.flows import Flow, FlowMark, find_flows
from medexam.experiments.report.plots.style import WIDTH, Plot, RunStyle, split_panels, wrap, write_title
from medexam.tables import decimal

COLORS = {FlowMark.RIGHT: "#0072B2", FlowMark.WRONG: "#E69F00", FlowMark.UNANSWERED: "#999999"}
"""Of the palette of Okabe and Ito, and a grey."""
COLUMNS = 3
PANEL_HEIGHT = 3.9
"""Inches."""
BAR = 0.09
"""Width of a run's bar, where the bars of both runs are 1 apart."""
GAP = 0.03
"""Height between marks, where all questions are 1."""
LINE = 0.045
"""Height that a count needs, in the same unit."""
STAYS, FLIPS = 0.25, 0.6
"""How opaque the bands are."""

Span = tuple[float, float]
"""Lower and upper end of a part of a bar."""
Band = tuple[FlowMark, FlowMark]


def flips_plot(run_looks: Sequence[RunStyle]) -> Plot | None:
    """Plan the plot of the first of these runs beside each other one; None where `find_flows` finds nothing to draw."""
    flows = find_flows([look.run for look in run_looks])
    if not flows:
        return None
    look_by_folder = {str(look.run.folder.path): look for look in run_looks}
    pairs = [
        (look_by_folder[str(flow.before.folder.path)], look_by_folder[str(flow.after.folder.path)], flow)
        for flow in flows
    ]
    caption = (
        f"What became of the n = {flows[0].n:,} questions that {'both' if len(flows) == 1 else 'all'} runs have "
        f"scored: in {pairs[0][0].name} on the left, in another run on the right. Widths are counts; the difference of "
        "accuracy, in percentage points (pp), has a 95 % interval "
        f"({describe_resampling((flow.accuracy.resampled for flow in flows), 'paired bootstrap', flows[0].clusters)})."
    )
    columns = min(COLUMNS, len(pairs))
    size = (max(6.0, WIDTH * columns / COLUMNS), 0.5 + PANEL_HEIGHT * -(-len(pairs) // columns))
    return Plot("flips", caption, size, partial(_draw, pairs=pairs))


def _draw(figure: Any, pairs: Sequence[tuple[RunStyle, RunStyle, Flow]]) -> None:
    grid = split_panels(figure, len(pairs), min(COLUMNS, len(pairs)))
    for axes, (before, after, flow) in zip(grid, pairs, strict=True):
        heading = f"{before.name} → {after.name}" if len(pairs) == 1 else f"→ {after.name}"
        draw_flow(axes, flow, heading)
    first, _, flow = pairs[0]
    words = f"Flips, n = {flow.n:,}" if len(pairs) == 1 else f"Flips from {first.name}, n = {flow.n:,}"
    run_looks = [first, *(after for _, after, _ in pairs)]
    write_title(figure, words, run_looks, same_questions=True)


def draw_flow(axes: Any, flow: Flow, heading: str) -> None:
    """Draw one flow between two bars; every band carries its number of questions."""
    sources = _stack([(part, _total(flow.counts, part, 0)) for part in FlowMark], flow.n)
    targets = _stack([(part, _total(flow.counts, part, 1)) for part in FlowMark], flow.n)
    for x, spans, side in ((0.0, sources, 0), (1.0, targets, 1)):
        _draw_bar(axes, x, spans, {part: _total(flow.counts, part, side) for part in spans}, side)
    starts, ends = _ends(flow, sources, 0), _ends(flow, targets, 1)
    places = _spread([sum(starts[band]) / 2 for band in starts], 1)
    for (band, start), place in zip(starts.items(), places, strict=True):
        _draw_band(axes, start, ends[band], COLORS[band[1]], FLIPS if band[0] != band[1] else STAYS)
        axes.text(BAR / 2 + 0.03, place, f"{flow.counts[band]:,}", va="center", fontsize="small")
    axes.set_xlim(-0.42, 1.42)
    axes.set_ylim(-0.02 - 2 * GAP, 1.02)
    axes.set_axis_off()
    low_high = flow.accuracy.interval
    interval = "" if low_high is None else f" [{decimal(100 * low_high[0])}, {decimal(100 * low_high[1])}]"
    difference = f"accuracy {100 * flow.accuracy.value:+.1f} pp{interval}"
    axes.set_title(f"{wrap(heading, 40)}\n{difference}", fontsize="small", y=1.0)


def _total(counts: Mapping[Band, int], part: FlowMark, side: int) -> int:
    return sum(count for band, count in counts.items() if band[side] is part)


def _stack(totals: Sequence[tuple[FlowMark, int]], n: int) -> dict[FlowMark, Span]:
    """Stack the marks that occur from the top down, each as high as its share of the questions."""
    spans: dict[FlowMark, Span] = {}
    top = 1.0
    for part, total in totals:
        if total:
            spans[part] = (top - total / n, top)
            top -= total / n + GAP
    return spans


def _ends(flow: Flow, spans: Mapping[FlowMark, Span], side: int) -> dict[Band, Span]:
    """Find where each band leaves (side 0) or reaches (side 1) its bar, from the top down, so that few bands cross."""
    span_by_band: dict[Band, Span] = {}
    for part, (_, top) in spans.items():
        for other in FlowMark:
            band = (part, other) if side == 0 else (other, part)
            if band in flow.counts:
                height = flow.counts[band] / flow.n
                span_by_band[band] = (top - height, top)
                top -= height
    return span_by_band


def _spread(places: Sequence[float], lines: int) -> list[float]:
    """Move the places, highest first, down just as far as a text of `lines` lines needs."""
    text_places = list(places)
    for above, below in pairwise(range(len(text_places))):
        text_places[below] = min(text_places[below], text_places[above] - lines * LINE)
    return text_places


def _draw_bar(axes: Any, x: float, spans: Mapping[FlowMark, Span], totals: Mapping[FlowMark, int], side: int) -> None:
    places = _spread([sum(span) / 2 for span in spans.values()], 2)
    for (part, (low, high)), place in zip(spans.items(), places, strict=True):
        axes.bar(x, high - low, bottom=low, width=BAR, color=COLORS[part])
        outside = x - BAR / 2 - 0.03 if side == 0 else x + BAR / 2 + 0.03
        words = f"{part.value}\n{totals[part]:,}"
        axes.text(outside, place, words, ha="left" if side else "right", va="center", fontsize="small")


def _draw_band(axes: Any, start: Span, end: Span, color: str, alpha: float) -> None:
    from matplotlib import patches, path

    start_x, end_x = BAR / 2, 1 - BAR / 2
    upper_edge = [(start_x, start[1]), (0.5, start[1]), (0.5, end[1]), (end_x, end[1])]
    lower_edge = [(end_x, end[0]), (0.5, end[0]), (0.5, start[0]), (start_x, start[0])]
    codes = [path.Path.MOVETO, *[path.Path.CURVE4] * 3, path.Path.LINETO, *[path.Path.CURVE4] * 3]
    outline = path.Path(upper_edge + lower_edge, codes)
    axes.add_patch(patches.PathPatch(outline, facecolor=color, edgecolor="none", alpha=alpha))
