"""Runs beside people: whole exams only, points counted twice, and figures that all have a source."""

import json
import os
from functools import cache
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError
from typer.testing import CliRunner

from medexam.cli import app
from medexam.experiments import Runner, find_runs, plan_experiment, rescore, run_report
from medexam.experiments.report.page.overview import build_overview
from medexam.experiments.report.papers.human_baseline import (
    FILE,
    AgainstPeople,
    ExamBoards,
    against_people,
    load_exam_boards,
    people_tables,
    result,
)
from medexam.experiments.report.tables import TerminalTable
from medexam.questions import Discipline
from medexam.specs import parse_overrides
from terminal import draw
from watching import Silent

FULL_DATA = os.environ.get("MEDEXAM_DATA")
SPEC = """
name: controls
dataset: {name: headqa_v1, language: es, years: [2016], disciplines: [medicine]}
program: {kind: longest}
"""
ALWAYS_FIRST = ("program.kind=blind", "program.option=1")
ROW = AgainstPeople(
    exam="Cuaderno_2016_1_M",
    discipline=Discipline.MEDICINE,
    year=2016,
    n=232,
    points=220,
    ten_best=592.2,
    pass_mark=207.27,
    source="https://example.org",
)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """`asked(*overrides)`: the folder of a real run of a control over medicine 2016 with these overrides."""
    if not FULL_DATA:
        pytest.skip("MEDEXAM_DATA does not name a folder with the full data sets")
    folder = tmp_path_factory.mktemp("people")

    @cache
    def run(*overrides: str) -> Path:
        runs = folder / f"runs{len(list(folder.iterdir()))}"
        (_,), stop = Runner(
            plan_experiment(yaml.safe_load(SPEC), parse_overrides(overrides), runs_dir=runs), Silent()
        ).run()
        assert stop is None
        return runs

    return run


def _stored(folder):
    return [rescore(run) for run in find_runs([folder])]


def _count_points(choose) -> int:
    """3 right - wrong over medicine 2016, from the authors' file alone."""
    return sum(3 if choose(question["answers"]) == int(question["ra"]) else -1 for question in _medicine_2016())


@cache
def _medicine_2016():
    exams = json.loads(Path(FULL_DATA, "headqa_v1", "HEAD.json").read_text(encoding="utf-8"))["exams"]
    return exams["Cuaderno_2016_1_M"]["data"]


def _longest(answers) -> int:
    return max(answers, key=lambda answer: len(answer["atext"]))["aid"]


def test_every_figure_is_well_formed_and_has_a_source() -> None:
    rows = yaml.safe_load(FILE.read_text(encoding="utf-8"))["sittings"]
    boards = load_exam_boards()
    assert len(rows) == len(boards.sittings) == 11
    assert all(set(row) == {"discipline", "year", "ten_best", "source"} for row in rows)
    for sitting in boards.sittings:
        assert sitting.source.startswith(("https://redaccionmedica.com/", "https://arxiv.org/abs/1906.04701"))
        assert 2013 <= sitting.year <= 2017
        assert 500 < sitting.ten_best < 3 * boards.counted
    assert "headqa_sample" not in boards.datasets


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "a newspaper"}, "source"),
        ({"source": None}, "source"),
        ({"ten_best": 700.0}, "more than the maximum"),
        ({"discipline": "dentistry"}, "discipline"),
    ],
)
def test_a_figure_without_a_source_or_out_of_range_is_refused(change, message) -> None:
    stated = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    stated["sittings"][0] |= change
    with pytest.raises(ValidationError, match=message):
        ExamBoards.model_validate(stated)


def test_an_exam_has_one_figure() -> None:
    stated = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    stated["sittings"].append(stated["sittings"][0])
    with pytest.raises(ValidationError, match="medicine 2013 is given 2 times"):
        ExamBoards.model_validate(stated)


@pytest.mark.parametrize(
    ("points", "margin", "passed", "text"),
    [
        (220, 12.73, True, "passed by 12.7"),
        (104, -103.27, False, "short by 103.3"),
        (207.27, 0, True, "passed by 0.0"),
        (-20, -227.27, False, "short by 227.3"),
    ],
)
def test_the_sign_of_the_margin(points, margin, passed, text) -> None:
    row = AgainstPeople(**{**vars(ROW), "points": points})
    assert (row.margin, row.passed, result(row)) == (margin, passed, text)
    assert json.loads(json.dumps(row.document()))["margin"] == margin


def test_what_passed_is_stressed_and_several_runs_are_named() -> None:
    fell = AgainstPeople(**{**vars(ROW), "points": 100})
    ((table, caption),) = people_tables([(ROW,), (), (fell,)], ["mine", "nothing", "yours"])
    assert table.headers == ("Run", "Exam", "n", "Points", "Ten best", "Pass mark", "Result")
    assert [row[0] for row in table.rows] == ["mine", "yours"]
    assert table.best == {(0, 6)}
    assert "35 % of that" in caption
    assert "At most 225 questions" in caption
    tables = [TerminalTable(*each) for each in people_tables([(ROW,)], ["mine"])]
    for width in (80, 100):
        assert all(len(line) <= width for line in draw(*tables, width=width).split("\n"))


def test_the_page_says_what_passes_and_has_a_strip_for_each_exam(make_run) -> None:
    fell = AgainstPeople(**{**vars(ROW), "points": 100})
    runs = [make_run({"kind": "longest"}, "rw"), make_run({"kind": "random"}, "rw", run_id="b")]
    overview = build_overview(runs, [(fell,), (ROW,)])
    assert overview.verdict[-1].startswith("1 of 2 whole exams are passed; the widest margin is that of random in ")
    (strip,) = overview.strips
    assert strip.runs == pytest.approx([100 * 100 / ROW.ten_best, 100 * ROW.points / ROW.ten_best], abs=0.01)
    assert (strip.pass_mark, strip.ten_best) == (pytest.approx(100 * ROW.pass_mark / ROW.ten_best, abs=0.01), 100)
    assert strip.text.startswith("best run passed by")
    short = build_overview(runs[:1], [(fell,)])
    assert short.verdict[-1].startswith("It passes no exam: longest in ")
    assert not build_overview(runs).strips


def test_a_sample_of_exams_shows_nothing(make_run) -> None:
    run = make_run({"kind": "longest"}, "rw")
    assert against_people([run]) == [()]
    assert people_tables([()], ["longest"]) == []
    assert "Against people" not in run_report(run, {})


@pytest.mark.data
def test_a_whole_exam_stands_beside_people_with_points_counted_anew(asked) -> None:
    (run,) = _stored(asked())
    ((row,),) = against_people([run])
    points = _count_points(_longest)
    assert (row.exam, row.discipline, row.year, row.n) == ("Cuaderno_2016_1_M", "medicine", 2016, 232)
    assert row.points == points
    assert row.ten_best == 592.2
    assert row.pass_mark == pytest.approx(0.35 * 592.2)
    assert row.margin == pytest.approx(points - 0.35 * 592.2)
    assert row.passed is (points >= 0.35 * 592.2)


@pytest.mark.data
@pytest.mark.parametrize("part", ["dataset.limit=231", "dataset.images=without"], ids=["limit", "pictures"])
def test_a_part_of_an_exam_shows_nothing(asked, part) -> None:
    (run,) = _stored(asked(part))
    assert 0 < run.metrics.n < 232
    assert against_people([run]) == [()]


@pytest.mark.data
def test_an_exam_without_figures_and_one_that_is_pending_show_nothing(asked) -> None:
    (run,) = _stored(asked("dataset.disciplines=[medicine, biology]", "dataset.years=[2015, 2016]"))
    assert [(row.discipline, row.year) for row in against_people([run])[0]] == [
        ("biology", 2016),
        ("medicine", 2015),
        ("medicine", 2016),
    ]
    log = run.folder.path / "predictions.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(line for line in lines if '/2015/medicine/3"' not in line))
    (incomplete,) = _stored(run.folder.path)
    assert incomplete.metrics.missing == 1
    assert [(row.discipline, row.year) for row in against_people([incomplete])[0]] == [
        ("biology", 2016),
        ("medicine", 2016),
    ]


@pytest.mark.data
def test_without_the_data_set_there_is_no_row(asked, monkeypatch, tmp_path) -> None:
    (run,) = _stored(asked())
    monkeypatch.setenv("MEDEXAM_DATA", str(tmp_path))
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path))
    assert against_people([run]) == [()]


@pytest.mark.data
def test_every_form_of_the_report_shows_the_table(asked, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    folders = [str(asked()), str(asked(*ALWAYS_FIRST))]
    first = _count_points(lambda answers: 1)
    short = f"short by {0.35 * 592.2 - first:.1f}"
    page, text = tmp_path / "page.html", tmp_path / "report.md"
    for runs, more, mark in (
        (folders[1:], (), "| medicine 2016 | 232 |"),
        (folders, ("--html", str(page)), "| blind-1 | medicine 2016 | 232 |"),
    ):
        shown = CliRunner().invoke(app, ["report", *runs, "--markdown", str(text), *more])
        assert shown.exit_code == 0, shown.output
        assert "Against people" in shown.stdout
        assert short in shown.stdout
        assert "## Against people" in text.read_text()
        assert any(line.startswith(mark) and short in line for line in text.read_text().splitlines())
    assert "Against people" in page.read_text()
    assert short in page.read_text()
    told = CliRunner().invoke(app, ["report", *folders, "--json"])
    rows = [row for run in json.loads(told.stdout) for row in run["against_people"]]
    assert [row["points"] for row in rows] == [_count_points(_longest), first]
    assert all(row["passed"] is (row["margin"] >= 0) for row in rows)
