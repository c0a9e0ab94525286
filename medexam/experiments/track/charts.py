"""Charts of an experiment's runs as SVG, which MLflow shows in descriptions and among files.

They are drawn without matplotlib, whose import and layout would take longer than sending a small run does.
"""

from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.stored_run import AnyRun
from medexam.metrics import Metrics
from medexam.tables import percent
from medexam.text import visible

MOST_RUNS = 30
"""Runs of a chart, the best first."""
_NAME, _BARS, _ROW, _TOP, _CELL = 260, 380, 22, 48, 84
"""Pixels: of the names, of the bars, of a row, above the rows, and of a cell of a grid."""
_NAME_LENGTH = 38
"""Characters of a name; a longer one is cut."""
_BLUE, _INK, _QUIET = "#2272b4", "#11171c", "#5f7281"


def render_charts(runs: Sequence[AnyRun], score: str) -> dict[str, str]:
    """Render charts by file name: `score` of each run with its interval, and accuracy by year and by discipline.

    `runs` are of one benchmark family, the best first. A chart without data is left out.
    """
    shown_runs = runs[:MOST_RUNS]
    names = run_names(runs)[:MOST_RUNS]
    charts = {f"{score}.svg": _bar_chart(shown_runs, names, score)}
    groups = {
        "year": {str(year): None for run in shown_runs for year in sorted(_by_year(run))},
        "discipline": {name: None for run in shown_runs for name in _by_discipline(run)},
    }
    for group, columns in groups.items():
        if columns:
            values = [_by_year(run) if group == "year" else _by_discipline(run) for run in shown_runs]
            charts[f"{score}_by_{group}.svg"] = _grid(f"Accuracy by {group}, percent", names, sorted(columns), values)
    return charts


def _by_year(run: AnyRun) -> dict[str, float]:
    scores = run.metrics.by_year if isinstance(run.metrics, Metrics) else {}
    return {str(year): group.accuracy for year, group in scores.items() if group.accuracy is not None}


def _by_discipline(run: AnyRun) -> dict[str, float]:
    scores = run.metrics.by_discipline if isinstance(run.metrics, Metrics) else {}
    return {name: group.accuracy for name, group in scores.items() if group.accuracy is not None}


def _bar_chart(runs: Sequence[AnyRun], names: Sequence[str], score: str) -> str:
    """Draw a bar a run with its 95 % interval, and the level of chance where it is known."""
    rows = [run.benchmark.values(run.metrics) for run in runs]
    ends = [value for row in rows for name in (score, f"{score}_low", f"{score}_high") if (value := row.get(name))]
    least, most = min(0.0, *ends, 0.0), max(*ends, 0.01, 0.0)

    def x(value: float) -> float:
        return _NAME + _BARS * (value - least) / (most - least)

    shapes = []
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        middle = _TOP + _ROW * number + _ROW / 2
        shapes.append(_text(_NAME - 8, middle + 4, _shorten(name), anchor="end"))
        value, low, high = row.get(score), row.get(f"{score}_low"), row.get(f"{score}_high")
        if value is None:
            continue
        left, right = sorted((x(0.0), x(value)))
        shapes.append(_box(left, middle - 7, right - left, 14))
        if low is not None and high is not None:
            shapes.append(_line(x(low), middle, x(high), middle))
        chance = row.get("chance_accuracy") if score == "accuracy" else None
        if chance is not None:
            shapes.append(_line(x(chance), middle - 9, x(chance), middle + 9, dashed=True))
        shapes.append(_text(x(max(high or value, value, 0.0)) + 8, middle + 4, percent(value)))
    title = f"{score.replace('_', ' ').capitalize()} of each run, percent, with 95 % intervals"
    note = "; dashed: chance" if any("chance_accuracy" in row for row in rows) and score == "accuracy" else ""
    return _picture(title + note, shapes, _NAME + _BARS + 60, _TOP + _ROW * len(runs) + 12)


def _grid(title: str, names: Sequence[str], columns: Sequence[str], rows: Sequence[Mapping[str, float]]) -> str:
    """Draw a row a run and a column a group; the darker a cell, the higher its value."""
    values = [value for row in rows for value in row.values()]
    least, most = min(values), max(values)
    shapes = [
        _text(_NAME + _CELL * (place + 0.5), _TOP - 6, column[:13], anchor="middle", color=_QUIET)
        for place, column in enumerate(columns)
    ]
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        top = _TOP + _ROW * number
        shapes.append(_text(_NAME - 8, top + _ROW / 2 + 4, _shorten(name), anchor="end"))
        for place, column in enumerate(columns):
            if column in row:
                share = (row[column] - least) / (most - least) if most > least else 0.5
                left = _NAME + _CELL * place
                shapes.append(_box(left + 1, top + 1, _CELL - 2, _ROW - 2, opacity=0.1 + 0.7 * share))
                shapes.append(_text(left + _CELL / 2, top + _ROW / 2 + 4, percent(row[column]), anchor="middle"))
    return _picture(title, shapes, _NAME + _CELL * len(columns) + 12, _TOP + _ROW * len(names) + 12)


def _picture(title: str, shapes: Sequence[str], width: float, height: float) -> str:
    return "\n".join(_picture_lines(title, shapes, width, height))


def _picture_lines(title: str, shapes: Sequence[str], width: float, height: float) -> Iterator[str]:
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img"'
    yield f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="12">'
    yield f"<title>{escape(title)}</title>"
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'
    yield _text(12, 20, title, weight="bold")
    yield from shapes
    yield "</svg>"


def _shorten(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"


def _text(x: float, y: float, text: str, *, anchor: str = "start", color: str = _INK, weight: str = "normal") -> str:
    style = f'text-anchor="{anchor}" fill="{color}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(visible(text))}</text>'


def _box(x: float, y: float, width: float, height: float, *, opacity: float = 1.0) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} fill="{_BLUE}" fill-opacity="{opacity:.2f}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, *, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="3 2"' if dashed else ' stroke-width="2"'
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_INK}"{dashes}/>'
