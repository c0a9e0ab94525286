"""The figures that ship are those that the papers print, cell by cell."""

import os
from pathlib import Path

import pytest
import yaml

from medexam.companions.papers.paper import all_papers
from medexam.experiments.report.papers.human_baseline import load_exam_boards

PAPERS = {paper.layout: paper for paper in all_papers()}
OF_SPANISH = ("RANDOM", "BLIND", "LENGTH")


@pytest.fixture(scope="module")
def printed():
    root = os.environ.get("MEDEXAM_DATA")
    file = Path(root).parent / "published" / "figures.yaml" if root else None
    if file is None or not file.exists():
        pytest.skip("the papers' figures do not lie beside MEDEXAM_DATA, in published/figures.yaml")
    return yaml.safe_load(file.read_text(encoding="utf-8"))


@pytest.mark.data
@pytest.mark.parametrize("number", [2, 3, 4])
def test_the_scores_of_the_second_paper(printed, number) -> None:
    grid = PAPERS["headqa-v2"].figures[number]
    figures = printed["headqa_v2"][f"table_{number}"]["figures"]
    for one in figures:
        row = f"{one['model']} {one['strategy']} {one['language']}"
        assert grid.figure(row, one["measure"]) == one["percent"]
    assert sum(len(row) for row in grid.rows.values()) == len(figures)


@pytest.mark.data
@pytest.mark.parametrize("number", [5, 6, 7, 8, 9])
def test_the_scores_of_the_first_paper(printed, number) -> None:
    grid, table = PAPERS["headqa-v1"].figures[number], printed["headqa_v1"][f"table_{number}"]
    rows = {
        f"{name} es" if name.startswith(OF_SPANISH) else "IR en" if name == "EN IR" else name: tuple(row)
        for name, row in table["rows"].items()
    }
    assert grid.columns == tuple(table["columns"])
    assert grid.rows == rows


@pytest.mark.data
def test_the_counts_of_both_papers(printed) -> None:
    table = printed["headqa_v2"]["table_1"]
    grid = PAPERS["headqa-v2"].figures[1]
    assert grid.columns == tuple(map(str, table["columns"]))
    assert grid.rows == {name: tuple(table[name]) for name in ("BIR", "QIR", "MIR", "EIR", "FIR", "PIR", "Total")}
    acronyms = {
        "biology": "BIR",
        "nursing": "EIR",
        "pharmacology": "FIR",
        "medicine": "MIR",
        "psychology": "PIR",
        "chemistry": "QIR",
        "total": "Total",
    }
    for number in (2, 3):
        table = {name: row for name, row in printed["headqa_v1"][f"table_{number}"].items() if name != "title"}
        grid = PAPERS["headqa-v1"].figures[number]
        assert grid.rows == {acronyms[name]: tuple(row) for name, row in table.items()}


@pytest.mark.data
@pytest.mark.parametrize("number", [7, 8, *range(14, 22)])
def test_the_scores_of_fine_tuned_encoders(printed, number) -> None:
    grid, table = PAPERS["casimedicos"].figures[number], printed["casimedicos"][f"table_{number}"]
    assert grid.columns == tuple(table["columns"])
    assert grid.rows == {name: tuple(row) for name, row in table["rows"].items()}


@pytest.mark.data
def test_what_the_corpora_hold(printed) -> None:
    figures, known = PAPERS["casimedicos"].figures, printed["casimedicos"]
    shares = {name: tuple(row) for name, row in known["table_9"].items() if name != "title"}
    assert figures[9].rows == shares
    assert figures[11].rows == {name: tuple(row) for name, row in known["table_11"].items() if name != "title"}
    rows = [
        known["table_2"][corpus][part]
        for corpus in ("casimedicos", "mir_asturias")
        for part in ("full", "clinical_cases")
    ]
    assert list(figures[2].rows.values()) == [tuple(row.values()) for row in rows]


@pytest.mark.data
def test_people_of_2016(printed) -> None:
    table = printed["headqa_v1"]["table_9"]
    disciplines = ("biology", "medicine", "nursing", "pharmacology", "psychology", "chemistry")
    sittings = {one.discipline: one for one in load_exam_boards().sittings if one.year == 2016}
    best = table["rows"]["Avg 10 best humans"]
    assert [sittings[discipline].ten_best for discipline in disciplines] == best
    assert all(sitting.source.startswith("https://") for sitting in sittings.values())
