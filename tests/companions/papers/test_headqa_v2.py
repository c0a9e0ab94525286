"""The HEAD-QA v2 paper's tables from stored runs: every number is that of `metrics.json`, and none is made up."""

import dataclasses
import json
import re

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from medexam.cli import app
from medexam.companions.papers.narrow import build_paper_tables
from medexam.companions.papers.paper import Grid, Paper, load_paper
from medexam.companions.papers.paper_tables import paper_tables, render_paper_latex, render_paper_report
from medexam.errors import SpecError
from medexam.experiments import find_runs, rescore
from medexam.experiments.store.run_folder import METRICS
from terminal import draw

PAPER = load_paper("paper")
SPEC = """
name: controls
dataset: {name: headqa_sample}
matrix:
  dataset.language: [en, es]
  program: [{kind: random}, {kind: blind, option: 5}]
"""
ZERO_SHOT, FEW_SHOT = {"kind": "zero_shot"}, {"kind": "few_shot"}
GUIDED = {"kind": "zero_shot", "answer_format": "guided"}
LIKELIHOOD = {"kind": "likelihood"}
LLAMA, MIXTRAL = "Llama-3.1-8B-Instruct", "Mixtral-8x7B-Instruct-v0.1"
PROMPTING, SELECTION, OTHERS = "prompting", "selection by log-probability", "other programs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four real runs: two controls in two languages. How runs are sent to MLflow is tested in `track`."""
    folder = tmp_path_factory.mktemp("controls")
    (folder / "spec.yaml").write_text(SPEC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("medexam.experiments.track.store.send_to_store", lambda *_, **__: None)
        ran = CliRunner().invoke(app, ["run", str(folder / "spec.yaml"), "--runs-dir", str(folder / "runs")])
    assert ran.exit_code == 0, ran.output
    return folder / "runs"


@pytest.fixture
def make(make_run):
    """`make(program, outcomes, model)`: a run as if that model of the hub had been served, on HEAD-QA v2."""

    def of(program, outcomes, model=LLAMA, dataset="headqa_v2", **settings):
        run = make_run(program, outcomes, run_id=f"{model}-{len(made)}", **settings)
        made.append(run)
        cell = run.record.cell
        cell = cell.model_copy(update={"dataset": cell.dataset.model_copy(update={"name": dataset})})
        return dataclasses.replace(
            run,
            record=dataclasses.replace(run.record, cell=cell),
            environment={**run.environment, "engine": {"model": f"hub/{model}"}},
        )

    made = []
    return of


def _figures(row: str, *percents: float) -> Paper:
    """The shipped layout with one row of figures of the test's own in table 2."""
    grid = Grid(columns=("accuracy", "exam_score")[: len(percents)], rows={row: percents})
    return PAPER.model_copy(update={"figures": {2: grid}})


def _cells(table) -> dict[tuple[str, str, str], str]:
    """(strategy, model, column) -> text."""
    words = table.table
    return {
        (row[0], row[1], header): text
        for row in words.rows
        for header, text in zip(words.headers[2:], row[2:], strict=True)
    }


def test_controls_have_a_table_behind_those_of_the_paper(folder) -> None:
    runs = [rescore(each) for each in find_runs([folder])]
    (others,) = paper_tables(runs, PAPER)
    assert (others.layout.title, others.layout.number) == (OTHERS, None)
    words = others.table
    figures = ("accuracy", "exam score", "unanswered", "n")
    assert words.headers == (
        "Strategy",
        "Model",
        *(f"{language} {name}" for language in ("en", "es") for name in figures),
    )
    cells = _cells(others)
    for run in runs:
        stored = json.loads((run.folder.path / METRICS).read_text())
        language = run.record.cell.dataset.language
        for name, measure in (
            ("accuracy", "accuracy"),
            ("exam score", "exam_score"),
            ("unanswered", "unanswered_ratio"),
        ):
            cell = cells[run.program, "no model", f"{language} {name}"]
            assert float(cell) == pytest.approx(100 * stored[measure], abs=0.0051)
        assert cells[run.program, "no model", f"{language} n"] == str(stored["n"]) == "120"


def test_models_stand_in_the_order_of_the_paper_and_missing_cells_are_dashes(make) -> None:
    runs = [make(FEW_SHOT, "rw", LLAMA), make(ZERO_SHOT, "rrrw", "New"), make(ZERO_SHOT, "rwu", MIXTRAL)]
    (prompting,) = paper_tables(runs, PAPER)
    assert prompting.title == f"Table 2: {PROMPTING} · headqa_v2"
    assert prompting.rows == [MIXTRAL, LLAMA, "New"]
    named = [row[:2] for row in prompting.table.rows if not row[1].startswith("  ")]
    assert named == [("zero-shot", MIXTRAL), ("zero-shot", "New"), ("few-shot", LLAMA)]
    cells = _cells(prompting)
    assert cells["few-shot", LLAMA, "en accuracy"] == "50.00"
    assert cells["zero-shot", MIXTRAL, "en accuracy"] == "35.00"
    assert cells["zero-shot", MIXTRAL, "en unanswered"] == "30.00"
    assert cells["zero-shot", MIXTRAL, "en exam score"] == f"{100 * (7 - 7 / 3) / 20:.2f}"
    assert (cells["few-shot", LLAMA, "es accuracy"], cells["zero-shot", MIXTRAL, "es n"]) == ("-", "-")


def test_the_papers_figures_stand_below_ours_with_the_difference(make) -> None:
    paper = _figures(f"{LLAMA} zero_shot en", 61.25, 40.0)
    (prompting,) = paper_tables([make(ZERO_SHOT, "rw"), make(GUIDED, "rrrw")], paper)
    cells = _cells(prompting)
    assert cells["zero-shot", LLAMA, "en accuracy"] == "50.00"
    below = [row for row in prompting.table.rows if row[1].startswith("  ")]
    assert [(row[1].strip(), *row[2:4]) for row in below] == [
        ("paper", "61.25", "40.00"),
        # Wilson's interval of 10 of 20 is 29.9 to 70.1. The paper's exam score follows another definition.
        ("difference", "≈ -11.25", "-"),
    ]
    assert cells["zero_shot-guided", LLAMA, "en accuracy"] == "75.00"
    assert cells["zero-shot", LLAMA, "en unanswered"] == "0.00"
    assert "arXiv 2511.15355" in prompting.legend
    (far,) = paper_tables([make(ZERO_SHOT, "rw")], _figures(f"{LLAMA} zero_shot en", 70.25))
    assert [row[2] for row in far.table.rows if "difference" in row[1]] == ["-20.25"]
    (same,) = paper_tables([make(ZERO_SHOT, "rw")], _figures(f"{LLAMA} zero_shot en", 50.0))
    assert [row[2] for row in same.table.rows if "difference" in row[1]] == ["="]


@pytest.mark.parametrize(
    ("model", "dataset", "language"),
    [(MIXTRAL, "headqa_v2", "en"), (LLAMA, "headqa_v1", "en"), (LLAMA, "headqa_v2", "es")],
)
def test_a_figure_stands_beside_its_own_cell_only(make, model, dataset, language) -> None:
    paper = _figures(f"{LLAMA} zero_shot en", 61.25)
    (prompting,) = paper_tables([make(ZERO_SHOT, "rw", model, dataset, language=language)], paper)
    assert _cells(prompting)["zero-shot", model, f"{language} accuracy"] == "50.00"
    assert not any("paper" in row[1] for row in prompting.table.rows)
    assert "arXiv" not in prompting.legend


def test_each_way_of_asking_has_its_table_and_data_sets_do_not_mix(make) -> None:
    retrieval = {"kind": "retrieve_then_answer"}
    runs = [make(LIKELIHOOD, "rw"), make(ZERO_SHOT, "rw", dataset="headqa_v1"), make(LIKELIHOOD | {"norm": "sum"}, "w")]
    tables = paper_tables([*runs, make(retrieval, "rw")], PAPER)
    assert [(table.dataset, table.title) for table in tables] == [
        ("headqa_v2", "Table 3: retrieval · headqa_v2"),
        ("headqa_v2", f"Table 4: {SELECTION} · headqa_v2"),
        ("headqa_v1", f"Table 2: {PROMPTING} · headqa_v1"),
    ]
    cells = _cells(tables[1])
    assert cells["log-probability", LLAMA, "en accuracy"] == "50.00"
    assert cells["likelihood-option_text-sum", LLAMA, "en accuracy"] == "0.00"
    assert cells["likelihood-option_text-sum", LLAMA, "en exam score"] == "-33.33"
    assert not any("unanswered" in header for header in tables[1].table.headers)


def test_two_runs_of_one_cell_are_refused(make) -> None:
    with pytest.raises(SpecError, match=r"same cell .*name one of them"):
        paper_tables([make(ZERO_SHOT, "rw"), make(ZERO_SHOT, "r")], PAPER)


def test_an_unfinished_run_is_marked(make) -> None:
    (prompting,) = paper_tables([make(ZERO_SHOT, "rm"), make(FEW_SHOT, "m")], PAPER)
    cells = _cells(prompting)
    assert (cells["zero-shot", LLAMA, "en accuracy"], cells["zero-shot", LLAMA, "en n"]) == ("100.00*", "10")
    assert (cells["few-shot", LLAMA, "en accuracy"], cells["few-shot", LLAMA, "en n"]) == ("-", "0")
    assert "questions of the run are pending" in prompting.legend


@pytest.mark.parametrize("width", [60, 80, 120, 300])
def test_the_terminal_shows_every_cell_at_any_width(make, width) -> None:
    runs = [make(program, "rw", model) for program in (ZERO_SHOT, FEW_SHOT, GUIDED) for model in (LLAMA, MIXTRAL, "x")]
    tables = paper_tables(runs, PAPER)
    drawn = "\n".join(draw(table, width=width) for table in build_paper_tables(tables, width))
    assert all(len(line) <= width for line in drawn.splitlines())
    assert len(re.findall(r"\b50\.00\b", drawn)) == 9
    assert "…" not in drawn
    assert drawn.count("Percent of n.") == 1


def test_the_best_of_each_column_is_bold_in_markdown_and_in_the_terminal(make) -> None:
    tables = paper_tables([make(ZERO_SHOT, "rrw", LLAMA), make(ZERO_SHOT, "rwwu", MIXTRAL)], PAPER)
    text = render_paper_report(tables)
    rows = [line for line in text.splitlines() if line.startswith("| zero-shot | L") or MIXTRAL in line]
    # The larger accuracy and exam score, and the smaller share of unanswered questions.
    assert [line.count("**") for line in rows] == [0, 6]
    assert "Bold: the best figure of the column." in text
    for table, _ in build_paper_tables(tables, 60):
        assert all(table.rows[row][column] != "-" for row, column in table.best)
    (stressed,) = [table.best for table, _ in build_paper_tables(tables, 300)]
    assert stressed == tables[0].table.best


def test_json_and_markdown_have_the_same_rows(make, tmp_path) -> None:
    tables = paper_tables([make(ZERO_SHOT, "rwu"), make({"kind": "longest"}, "rw")], PAPER)
    document = json.loads(json.dumps([table.document() for table in tables]))
    text = render_paper_report(tables)
    for table, found in zip(tables, document, strict=True):
        words = table.table
        assert found["headers"] == list(words.headers)
        assert found["rows"] == [list(row) for row in words.rows]
        assert all("| " + " | ".join(row) + " |" in text for row in words.rows)
    (run,) = document[0]["runs"]
    assert (run["model"], run["strategy"], run["n"]) == (LLAMA, "zero_shot", 20)
    found = run["figures"]["accuracy"]
    assert (found["value"], found["published"]) == (35.0, 70.43)
    assert found["difference"] == pytest.approx(35.0 - found["published"])
    assert found["interval"][0] < 35.0 < found["interval"][1]


def test_the_command(folder, tmp_path) -> None:
    printed = CliRunner().invoke(app, ["report", str(folder), "--layout", "paper"])
    assert printed.exit_code == 0
    assert "other programs · headqa_sample" in printed.output
    target = tmp_path / "paper.md"
    arguments = ["report", str(folder), "--layout", "paper", "--json", "--markdown", str(target)]
    as_json = CliRunner().invoke(app, arguments)
    document = json.loads(as_json.stdout)
    assert [table["title"] for table in document] == [OTHERS]
    assert {run["run_id"] for run in document[0]["runs"]} == {each.name for each in folder.glob("controls-*")}
    assert "## other programs" in target.read_text()
    assert CliRunner().invoke(app, ["report", str(folder), "--layout", "headqa-v2"]).output == printed.output
    refused = CliRunner().invoke(app, ["report", str(folder), "--layout", "other"])
    assert "the choices are headqa-v1, headqa-v2" in str(refused.exception)


def test_figures_without_a_table_are_refused() -> None:
    assert [table.number for table in PAPER.tables] == [2, 3, 4, None]
    figures = PAPER.model_dump()["figures"]
    for lost, why in (
        ({9: {"columns": ["accuracy"], "rows": {}}}, "no table 9"),
        ({2: {"columns": ["recall"], "rows": {}}}, "table 2 has no column 'recall'"),
        ({2: {"columns": ["accuracy"], "rows": {"x": [1.0, 2.0]}}}, "row 'x' has 2 figures for 1 columns"),
    ):
        with pytest.raises(ValidationError, match=why):
            Paper.model_validate(PAPER.model_dump() | {"figures": figures | lost})


def test_another_paper_is_another_file(make) -> None:
    table = {"title": "solvers", "rows": "runs", "measures": ["accuracy"]}
    declared = {"layout": "ours", "paper": "Ours", "arxiv": "0", "dataset": "headqa_v2", "tables": [table]}
    paper = Paper.model_validate(declared | {"measures": {"accuracy": {"heading": "right"}}, "decimals": 0})
    (found,) = paper_tables([make(ZERO_SHOT, "rw"), make({"kind": "longest"}, "rrrw")], paper)
    assert (found.title, found.table.headers) == ("solvers · headqa_v2", ("Solver", "right", "n"))
    assert [row[1] for row in found.table.rows] == ["50", "75"]


def test_in_print_the_best_of_a_column_is_bold_and_languages_stand_above_their_figures(make) -> None:
    runs = [make(ZERO_SHOT, "rrrw"), make(ZERO_SHOT, "rwwu", MIXTRAL), make(FEW_SHOT, "rw")]
    (table,) = paper_tables(runs, PAPER)
    in_print = table.in_print
    assert {(in_print.rows[row][:2], in_print.headers[column]) for row, column in in_print.best} == {
        (("zero-shot", LLAMA), "en accuracy"),
        (("zero-shot", LLAMA), "en exam score"),
        (("zero-shot", LLAMA), "en unanswered"),
        (("few-shot", LLAMA), "en unanswered"),
    }
    assert in_print.spans == ("", "", *["en"] * 4, *["es"] * 4)
    assert r"\multicolumn{4}{c}{en} & \multicolumn{4}{c}{es}" in render_paper_latex([table])
    # A run with pending questions is not set against another.
    (pending,) = paper_tables([*runs, make(FEW_SHOT, "rwm", MIXTRAL)], PAPER)
    assert not {column for _, column in pending.table.best if pending.table.headers[column] == "en accuracy"}
