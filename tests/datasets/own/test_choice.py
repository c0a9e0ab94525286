"""Multiple-choice questions of one's own: the same golds however a file writes them, and no guess about any."""

import json

import openpyxl
import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError, SpecError
from medexam.specs import DatasetSpec, validate
from table_cases import read_cases, read_table, write_rows

LETTERS = ["A", "B", "C", "D"]
PLAIN = read_cases("own_columns")[0].values[0]["rows"]
"""Four questions with an option in each column."""
STEMS, OPTIONS = [row["stem"] for row in PLAIN], [[row[letter] for letter in LETTERS] for row in PLAIN]
GOLDS = (3, 1, 4, 2)
SPLIT = {"options": LETTERS}
"""Columns of the plain file."""


def _in_lists(answers, options=OPTIONS) -> list[dict]:
    return [
        {"stem": stem, "options": list(texts), "answer": answer}
        for stem, texts, answer in zip(STEMS, options, answers, strict=True)
    ]


def _golds(exams) -> tuple[int, ...]:
    return tuple(exams.golds[question.key].number for question in exams.questions)


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "tsv", "parquet"])
@pytest.mark.parametrize("case", read_cases("own_columns"))
def test_questions_and_golds_are_the_same_however_they_are_written(load, case, ending) -> None:
    if case["name"] == "a field within a field" and ending in {"csv", "tsv"}:
        pytest.skip("a table of texts has no fields within fields")
    exams, plain = (
        load(case["rows"], f"mine.{ending}", columns=case["columns"]),
        load(PLAIN, "plain.csv", columns=SPLIT),
    )
    assert _golds(exams) == tuple(case["golds"]) == GOLDS
    assert exams.questions == plain.questions
    assert (exams.fingerprint, exams.golds_fingerprint) == (plain.fingerprint, plain.golds_fingerprint)


def test_an_excel_sheet_holds_the_same(load, tmp_path, monkeypatch) -> None:
    book = openpyxl.Workbook()
    for row in [list(PLAIN[0]), *(list(row.values()) for row in PLAIN)]:
        book.active.append(row)
    book.create_sheet("empty")
    book.save(tmp_path / "mine.xlsx")
    spec = validate(DatasetSpec, {"kind": "choice", "path": tmp_path / "mine.xlsx", "columns": SPLIT})
    assert _golds(load_exam_set(spec)) == GOLDS
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(DatasetError, match=r"pip install 'medexam\[data\]'"):
        load_exam_set(spec)


def test_lists_in_a_cell_are_unpacked_and_their_texts_cleaned(load) -> None:
    rows = [{"stem": "Which?", "options": '["a &quot;b&quot;", "H<sub>2</sub>"]', "answer": "B"}]
    rows.append({"stem": "Then?", "options": "{'A': 'x &amp; y', 'B': 'z'}", "answer": "A"})
    exams = load(rows, "mine.csv")
    assert [[option.text for option in one.options] for one in exams.questions] == [['a "b"', "H2"], ["x & y", "z"]]
    assert _golds(exams) == (2, 1)


def test_a_field_within_a_list_of_records_gives_their_values(load) -> None:
    options = [{"text": "a", "isCorrect": False}, {"text": "b", "isCorrect": True}, {"text": "c", "isCorrect": False}]
    columns = {"options": "options.text", "answer": "options.isCorrect"}
    exams = load([{"stem": "Which?", "options": options}], columns=columns)
    assert ([option.text for option in exams.questions[0].options], _golds(exams)) == (["a", "b", "c"], (2,))


def test_a_spec_may_say_how_answers_are_read(load) -> None:
    assert _golds(load(_in_lists([2, 1, 3, 1]), columns={"numbering": "zero"})) == (3, 2, 4, 2)
    assert _golds(load(_in_lists([2, 1, 3, 1]), columns={"numbering": "one"})) == (2, 1, 3, 1)
    assert _golds(load(_in_lists(["C", "A", "D", "B"]), columns={"answer_as": "letter"})) == GOLDS


@pytest.mark.parametrize(*read_table("ambiguous_answers"))
def test_what_is_ambiguous_is_asked_for(load, answers, options, said) -> None:
    with pytest.raises(DatasetError, match=said):
        load(_in_lists(answers, options))


@pytest.mark.parametrize(
    "answer",
    ["A,C", "A; C", ["A", "C"], [1, 3], "1,3", ["Retinol", "Vitamin C"], [1, 0, 1, 0], [True, False, True, False]],
)
def test_any_of_several_right_answers_is_right(load, answer) -> None:
    rows = [{"stem": STEMS[0], "options": list(OPTIONS[0]), "answer": answer}]
    if answer in ([1, 3], "1,3"):
        rows.append({"stem": STEMS[1], "options": list(OPTIONS[1]), "answer": [4] if isinstance(answer, list) else "4"})
    exams = load(rows)
    gold = exams.golds[exams.questions[0].key]
    assert (gold.number, gold.others) == (1, (3,))
    assert [number for number in (1, 2, 3, 4, None) if gold.accepts(number)] == [1, 3]


FILLED = {
    "question": ("q", "Which is right?"),
    "options": (["a", "b"], ["Yes", "No"]),
    "answer": ("right", "b"),
    "context": ("text", "A story."),
    "subject": ("topic", "ethics"),
    "year": ("when", "2019"),
    "exam": ("booklet", "spring"),
    "image": ("pic", "x.png"),
    "id": ("key", 17),
    "split": ("part", "validation"),
    "explanation": ("why", "Because."),
}
"""Field -> its column, or columns, and what it holds."""


def test_columns_fill_a_question(load) -> None:
    cells = [
        pair
        for name, held in FILLED.values()
        for pair in ([(name, held)] if isinstance(name, str) else zip(name, held, strict=True))
    ]
    columns = {field: name for field, (name, _) in FILLED.items()}
    rows = [dict(cells)]
    (question,) = load(rows, columns=columns).questions
    assert question.printed == "A story.\n\nWhich is right?\n1. Yes\n2. No"
    exam = question.exam
    assert (exam.name, exam.year, exam.discipline, exam.split) == ("spring", 2019, "ethics", "dev")
    assert (question.key, question.image, exam.independent) == ("17", "x.png", False)
    assert load(rows, columns=columns, explained=True).questions[0].context == "A story.\n\nBecause."
    assert load(rows, columns=columns, disciplines="ethics", years=2019, split="dev").questions
    without = {field: name for field, name in columns.items() if field not in ("context", "id")}
    fingerprint = load(rows, columns=without).fingerprint
    assert load(rows, columns={**without, "context": "text"}).fingerprint != fingerprint


def test_a_key_depends_on_neither_place_nor_name(load) -> None:
    first, second = load(PLAIN, "mine.csv", columns=SPLIT), load(PLAIN[::-1], "other.tsv", columns=SPLIT)
    assert {one.key: one.stem for one in first.questions} == {one.key: one.stem for one in second.questions}
    assert first.fingerprint == second.fingerprint
    assert (first.name, second.name) == ("mine", "other")
    twice = load([*PLAIN, PLAIN[0]], columns=SPLIT)
    assert twice.questions[-1].key == f"{twice.questions[0].key}-2"


BAD = [
    *_in_lists("CADB"),
    {"stem": "No such letter?", "options": ["x", "y"], "answer": "D"},
    {"stem": "", "options": ["x", "y"], "answer": "A"},
    {"stem": "One option?", "options": ["x"], "answer": "A"},
    {"stem": "No answer?", "options": ["x", "y"], "answer": None},
]


def test_bad_rows_are_named_by_number_and_column_and_left_out_only_where_that_is_said(load) -> None:
    for settings in ({}, {"skip_bad": True}, {"skip_bad": 0.4}):
        with pytest.raises(DatasetError) as error:
            load(BAD, "mine.json", **settings)
        said = str(error.value)
        assert "4 of 8 rows are bad: row 5, column answer: is 'D', which names none of its 2 options (x / y); " in said
        assert "row 6, column stem: is empty; row 7, column options: a question needs at least two" in said
        assert "set dataset.skip_bad: 0.5" in said
    exams = load(BAD, "mine.json", skip_bad=0.5)
    assert [question.stem for question in exams.questions] == list(STEMS)
    assert exams.notes[0].startswith("4 of 8 rows are left out: row 5, column answer")
    with pytest.raises(DatasetError, match="no question remains: name other columns or another kind"):
        load(BAD[5:], "mine.json", skip_bad=1)


@pytest.mark.parametrize(*read_table("bad_answers"))
def test_an_answer_that_names_two_options_or_none_is_bad(load, options, good, bad) -> None:
    rows = _in_lists([bad, *good], [options, *OPTIONS[1:]])
    with pytest.raises(DatasetError, match="1 of 4 rows is bad: line 1, column answer: is "):
        load(rows)
    assert _golds(load(rows, skip_bad=0.25)) == GOLDS[1:]


def test_a_column_that_does_not_exist_is_named_with_the_nearest(load) -> None:
    with pytest.raises(DatasetError, match=r"columns.stem is 'stemm', .* no such column: did you mean 'stem'"):
        load(PLAIN, columns={"stem": "stemm", **SPLIT})


def test_the_options_of_every_question_may_stand_in_the_spec(load) -> None:
    rows = [{"question": "Is it?", "context": ["One.", "Two."], "final": "maybe"}]
    exams = load(rows, columns={"answer": "final", "choices": ["yes", "no", "maybe"]})
    assert exams.questions[0].printed == "One.\n\nTwo.\n\nIs it?\n1. yes\n2. no\n3. maybe"
    assert _golds(exams) == (3,)


@pytest.mark.parametrize("case", read_cases("refused_datasets"))
def test_a_spec_that_cannot_be_meant_is_refused(case) -> None:
    with pytest.raises(SpecError, match=case["said"]):
        validate(DatasetSpec, case["dataset"])


def test_a_data_set_of_the_hub_is_read_like_a_file(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "someone" / "exams"
    write_rows(folder / "test.jsonl", _in_lists([2, 0, 3, 1]))
    exams = load_exam_set(validate(DatasetSpec, {"kind": "choice", "hub": {"id": str(folder)}}))
    assert (_golds(exams), exams.name) == (GOLDS, "exams")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DatasetError, match=r"cannot read nobody-at-all/nothing .*hf download .*set dataset.path"):
        load_exam_set(validate(DatasetSpec, {"kind": "choice", "hub": {"id": "nobody-at-all/nothing"}}))


def test_a_spec_is_written_and_read_back_with_a_column_that_is_off(load) -> None:
    tree = {"kind": "choice", "path": "a.csv", "columns": {"options": LETTERS, "year": None}}
    spec = validate(DatasetSpec, tree)
    assert validate(DatasetSpec, json.loads(spec.model_dump_json())) == spec
