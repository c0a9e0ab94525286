"""The benchmarks that ship as a declaration, on files with the field names of their hub's copy and of their authors."""

from pathlib import Path

import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec, build_cells, load_document, parse_overrides, validate
from table_cases import read_cases, read_table, write_rows

CASES = {case.values[0]["name"]: case.values[0] for case in reversed(read_cases("shipped"))}
"""Name -> the case of the hub's copy."""
DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def load_shipped(tmp_path):
    """`load_shipped("medqa", rows)`: the questions of the declaration's file with these rows."""

    def read(name: str, rows):
        ending = "json" if isinstance(rows, dict) else "jsonl"
        path = write_rows(tmp_path / f"copy.{ending}", rows)
        return load_exam_set(validate(DatasetSpec, {**load_document(name)["dataset"], "path": path}))

    return read


@pytest.mark.parametrize("case", read_cases("shipped"))
def test_golds_are_those_of_the_file(load_shipped, tmp_path, case) -> None:
    exams = load_shipped(case["name"], case.get("rows") or case["document"])
    golds = [exams.golds[question.key] for question in exams.questions]
    assert [gold.number for gold in golds] == case["golds"]
    assert all(gold.others == () for gold in golds)
    texts = [[option.text for option in one.options] for one in exams.questions]
    if "options" in case:
        assert texts == [case["options"]] * len(golds)
        assert (exams.name, bool(exams.citation)) == (case["name"], True)
        published = load_document(case["name"])["dataset"]["published"].get("questions")
        said = f"{tmp_path}/copy.jsonl holds 4 questions, and {published or 0:,} are published"
        assert exams.notes == ((said,) if published else ())
    else:
        assert [text[gold.number - 1] for text, gold in zip(texts, golds, strict=True)] == case["right"]


@pytest.mark.parametrize(
    ("name", "column"), [("mmlu_pro_health", "category"), ("global_mmlu", "subject"), ("mmlu", "subject")]
)
def test_only_the_named_subjects_are_asked(load_shipped, name, column) -> None:
    rows = CASES[name]["rows"]
    exams = load_shipped(name, [*rows[:3], rows[3] | {column: "law"}])
    assert [question.stem for question in exams.questions] == ["Question 0?", "Question 1?", "Question 2?"]


def test_lettered_options_are_read_as_the_hub_may_give_them(load_shipped) -> None:
    texts, rows = CASES["med_ita"]["options"], CASES["med_ita"]["rows"]
    lettered = dict(zip("ABCDE", texts, strict=True))
    for options in (lettered, [dict.fromkeys("ABCDE") | {letter: text} for letter, text in lettered.items()]):
        exams = load_shipped("med_ita", [row | {"options": options} for row in rows])
        assert [[option.text for option in one.options] for one in exams.questions] == [texts] * 4
        assert [exams.golds[one.key].number for one in exams.questions] == CASES["med_ita"]["golds"]


@pytest.mark.parametrize(*read_table("several_answers"))
def test_questions_that_want_several_answers_are_left_out_and_counted(load_shipped, name, several, bad) -> None:
    rows = CASES[name]["rows"]
    exams = load_shipped(name, [rows[0], rows[1] | several, *[rows[2]] * 17, rows[3] | bad])
    assert [question.stem for question in exams.questions] == ["Question 0?", *["Question 2?"] * 17]
    assert len(exams.left_out) == 1
    assert any("1 of 20 rows is left out" in note for note in exams.notes)
    assert any("1 of 20 questions are left out, because they need several" in note for note in exams.notes)


def test_an_abstract_stands_before_its_question(load_shipped) -> None:
    assert load_shipped("pubmedqa", CASES["pubmedqa"]["rows"]).questions[0].context == "First part.\n\nSecond part."


def test_another_file_is_refused_by_the_columns_of_the_declaration(load_shipped) -> None:
    with pytest.raises(DatasetError, match=r"columns.stem is 'sent1', and there is no such column"):
        load_shipped("medqa", [{"text": "Which?", "right": "A"}])


def test_the_page_lists_what_ships() -> None:
    lines = (DOCS / "benchmarks.md").read_text(encoding="utf-8").splitlines()
    listed = {name.strip(" `") for line in lines if line.startswith("| `") for name in line.split("|")[1].split(",")}
    assert listed == {*CASES}


def test_a_copy_is_read_instead_of_the_hub(tmp_path) -> None:
    _, (cell,) = build_cells(load_document("medqa"), parse_overrides([f"dataset.path={tmp_path}/x.jsonl"]))
    assert (cell.dataset.name, str(cell.dataset.path)) == ("medqa", f"{tmp_path}/x.jsonl")
    assert cell.dataset.whole.published == cell.dataset.published
