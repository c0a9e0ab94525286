"""The HEAD-QA v1 paper's tables from real runs of the real data: every number is that of `metrics.json`."""

import json
import os

import pytest
from typer.testing import CliRunner

from medexam.cli import app
from medexam.companions.papers.paper import load_paper
from medexam.companions.papers.paper_tables import paper_tables, render_paper_report
from medexam.errors import SpecError
from medexam.experiments import Runner, plan_experiment
from medexam.specs import load_document
from watching import Silent

DISCIPLINES = {
    "BIR": "biology",
    "MIR": "medicine",
    "EIR": "nursing",
    "FIR": "pharmacology",
    "PIR": "psychology",
    "QIR": "chemistry",
}
PAPER = load_paper("headqa-v1")
LONGEST_OF_DEV = {
    "name": "controls",
    "dataset": {"name": "headqa_v1", "language": "es", "split": "dev"},
    "program": {"kind": "longest"},
}


def ask(folder, document, **overrides):
    runs, stopped = Runner(plan_experiment(document, overrides, runs_dir=folder), Silent()).run()
    assert stopped is None
    return runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    if not os.environ.get("MEDEXAM_DATA"):
        pytest.skip("MEDEXAM_DATA is not set: it names the folder that holds headqa_v1/HEAD.json")
    folder = tmp_path_factory.mktemp("v1")
    return {
        "all": ask(folder / "all", load_document("headqa_v1_controls")),
        "test": ask(folder / "test", load_document("headqa_v1_controls_test")),
        "dev": ask(folder / "dev", LONGEST_OF_DEV),
    }


@pytest.mark.data
def test_every_published_cell_of_the_controls_is_reproduced(runs) -> None:
    found = {table.layout.number: table for table in paper_tables(runs["all"], PAPER)}
    assert list(found) == [5, 6, 7, 8, 9]
    equal = 0
    for number in (5, 6):
        equal += check_controls(found[number])
    of_test = {table.layout.number: table for table in paper_tables(runs["test"], PAPER)}
    assert list(of_test) == [7, 8]
    for number in (7, 8):
        equal += check_controls(of_test[number])
    assert equal == 7 * (6 + 2 + 3 + 3)


def check_controls(table) -> int:
    """How many cells the paper prints, all of which are equal to ours."""
    cells = [table.cell(run, figure) for run in table.runs for figure in table.figures]
    published = [cell for cell in cells if cell.published is not None]
    assert [cell.difference for cell in published] == [0.0] * len(published)
    return len(published)


@pytest.mark.data
def test_rows_say_what_the_paper_calls_them(runs) -> None:
    accuracy, *_, people = [table.table for table in paper_tables(runs["all"], PAPER)]
    assert accuracy.headers == ("Solver", "BIR", "MIR", "EIR", "FIR", "PIR", "QIR", "Avg", "n")
    names = [row[0] for row in accuracy.rows if not row[0].startswith("  ")]
    assert names == ["RANDOM es", "BLIND 1 es", "BLIND 2 es", "BLIND 3 es", "BLIND 4 es", "LENGTH es"]
    at = accuracy.rows.index(next(row for row in accuracy.rows if row[0] == "LENGTH es"))
    assert (accuracy.rows[at][1], accuracy.rows[at][-2:]) == ("26.9", ("28.1", "6,765"))
    assert accuracy.rows[at + 1][:2] == ("  paper", "26.9")
    assert accuracy.rows[at + 2][:2] == ("  difference", "=")
    assert people.headers[-2:] == ("QIR", "n")
    assert people.rows[-2:] == (
        ("Avg 10 best humans", "627.1", "592.2", "515.2", "575.5", "602.1", "529.1", ""),
        ("Pass mark", "219.0", "207.0", "180.0", "201.0", "210.0", "185.0", ""),
    )


@pytest.mark.data
def test_runs_of_all_exams_and_of_the_test_split_say_the_same_of_it(runs) -> None:
    whole = {table.layout.number: table for table in paper_tables(runs["all"], PAPER)}
    for table in paper_tables(runs["test"], PAPER):
        rows = {row[0]: row for row in whole[table.layout.number].table.rows}
        assert all(rows[row[0]] == row for row in table.table.rows if row[0].startswith(("BLIND", "LENGTH")))
    others = paper_tables(runs["dev"], PAPER)
    assert [table.layout.number for table in others] == [None, None]


@pytest.mark.data
def test_every_cell_is_that_of_the_metrics(runs) -> None:
    metrics = {run.record.run_id: run.metrics for run in runs["all"]}
    for table in [table.document() for table in paper_tables(runs["all"], PAPER)][:2]:
        measure = "accuracy" if table["table"] == 5 else "points"
        for row in table["runs"]:
            own = metrics[row["run_id"]]
            assert row["figures"]["Avg"]["value"] == getattr(own, f"headqa_v1_{measure}")
            for column, discipline in DISCIPLINES.items():
                found = row["figures"][column]
                assert found["value"] == getattr(own.by_discipline[discipline], f"headqa_v1_{measure}")
                assert found["interval"][0] < found["value"] < found["interval"][1]
    assert "| LENGTH es | **26.9** |" in render_paper_report(paper_tables(runs["all"], PAPER))


def test_runs_of_other_data_are_refused_with_the_way_out(tmp_path) -> None:
    with pytest.raises(SpecError, match="asked headqa_sample: name runs of headqa_v1 alone"):
        paper_tables(ask(tmp_path, LONGEST_OF_DEV, **{"dataset.name": "headqa_sample", "dataset.split": "all"}), PAPER)
    said = CliRunner().invoke(app, ["report", str(tmp_path), "--layout", "headqa-v1", "--json"])
    assert isinstance(said.exception, SpecError)


@pytest.mark.data
def test_the_command_prints_them(runs) -> None:
    folders = [str(run.folder.path) for run in runs["all"]]
    said = CliRunner().invoke(app, ["report", *folders, "--layout", "headqa-v1", "--json"])
    assert said.exit_code == 0, said.output
    assert [table["table"] for table in json.loads(said.stdout)] == [5, 6, 7, 8, 9]
    said = CliRunner().invoke(app, ["report", *folders, "--layout", "headqa-v1"])
    assert "unsupervised setting (all exams)" in said.output
