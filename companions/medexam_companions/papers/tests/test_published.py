"""The figures that ship are those that the papers print, cell by cell."""

import os
from pathlib import Path

import pytest
import yaml

from medexam_companions.papers import all_papers

pytestmark = pytest.mark.data
FIGURES = {name: paper.figures for name, paper in all_papers().items()}
ACRONYMS = {
    "biology": "BIR",
    "nursing": "EIR",
    "pharmacology": "FIR",
    "medicine": "MIR",
    "psychology": "PIR",
    "chemistry": "QIR",
    "total": "Total",
}


@pytest.fixture(scope="module")
def printed():
    root = os.environ.get("MEDEXAM_DATA")
    file = Path(root).parent / "published" / "figures.yaml" if root else None
    if file is None or not file.exists():
        pytest.skip("the papers' figures do not lie beside MEDEXAM_DATA, in published/figures.yaml")
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def rows_of(table):
    return {name: tuple(row) for name, row in table.items() if name != "title"}


def test_the_first_paper(printed) -> None:
    figures, known = FIGURES["headqa-v1"], printed["headqa_v1"]
    for number in (5, 6, 7, 8, 9):
        table = known[f"table_{number}"]
        assert figures[number].columns == tuple(table["columns"])
        assert figures[number].rows == {
            f"{name} es"
            if name.startswith(("RANDOM", "BLIND", "LENGTH"))
            else "IR en"
            if name == "EN IR"
            else name: row
            for name, row in rows_of(table["rows"]).items()
        }
    for number in (2, 3):
        assert figures[number].rows == {ACRONYMS[name]: row for name, row in rows_of(known[f"table_{number}"]).items()}


def test_the_second_paper(printed) -> None:
    figures, known = FIGURES["headqa-v2"], printed["headqa_v2"]
    for number in (2, 3, 4):
        table = known[f"table_{number}"]["figures"]
        for one in table:
            row = f"{one['model']} {one['strategy']} {one['language']}"
            assert figures[number].figure(row, one["measure"]) == one["percent"]
        assert sum(len(row) for row in figures[number].rows.values()) == len(table)
    table = known["table_1"]
    assert figures[1].columns == tuple(map(str, table["columns"]))
    assert figures[1].rows == {name: tuple(table[name]) for name in ACRONYMS.values()}


def test_the_paper_of_fine_tuned_encoders(printed) -> None:
    figures, known = FIGURES["casimedicos"], printed["casimedicos"]
    for number in (7, 8, *range(14, 22)):
        assert figures[number].columns == tuple(known[f"table_{number}"]["columns"])
        assert figures[number].rows == rows_of(known[f"table_{number}"]["rows"])
    for number in (9, 11):
        assert figures[number].rows == rows_of(known[f"table_{number}"])
    corpora = [known["table_2"][corpus] for corpus in ("casimedicos", "mir_asturias")]
    rows = [tuple(corpus[part].values()) for corpus in corpora for part in ("full", "clinical_cases")]
    assert list(figures[2].rows.values()) == rows
