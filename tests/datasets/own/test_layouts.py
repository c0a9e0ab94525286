"""What `medexam init` writes for other people's files: the golds that their owners mean, or an open line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from medexam.errors import DatasetError, SpecError
from medexam.questions import ExamSet
from table_cases import read_cases, write_rows

LETTERS = "ABCD"
SIX = read_cases("layouts")[0].values[0]["right"]
"""Six questions of the table: stem, options, and the right ones."""
STEMS, OPTIONS = [stem for stem, _, _ in SIX], [options for _, options, _ in SIX]
GOLDS = [options.index(right) for _, options, (right,) in SIX]
"""Places from 0."""
TRUE = {stem: (set(options), set(right)) for stem, options, right in SIX}
PASSAGE = "A woman of 40 years comes with pain that began two days ago."


def _rows(**more: Callable[[int], Any]) -> list[dict[str, Any]]:
    """The six questions with their options in columns, and more columns by the place of the row."""
    return [
        {"question": stem, **dict(zip(LETTERS, texts, strict=True)), **{name: make(n) for name, make in more.items()}}
        for n, (stem, texts) in enumerate(zip(STEMS, OPTIONS, strict=True))
    ]


@pytest.fixture
def propose(init, tmp_path: Path) -> Callable[..., tuple[dict[str, Any], str, list[str]]]:
    """`propose(rows)`: the data set of the spec that is written, what is printed, and the lines that are open."""

    def write(rows: Any, *words: object, name: str = "mine.jsonl") -> tuple[dict[str, Any], str, list[str]]:
        write_rows(tmp_path / name, rows)
        return init(name, *words)

    return write


def _said(exams: ExamSet) -> dict[str, tuple[set[str], set[str]]]:
    """Stem -> the options, and those that are right."""
    found = {}
    for question in exams.questions:
        texts = {option.number: option.text for option in question.options}
        gold = exams.golds[question.key]
        found[question.stem] = (set(texts.values()), {texts[number] for number in (gold.number, *gold.others)})
    return found


def _right(case: dict[str, Any]) -> dict[str, tuple[set[str], set[str]]]:
    return {stem: (set(options), set(right)) for stem, options, right in case["right"]}


@pytest.mark.parametrize("case", read_cases("layouts"))
def test_a_layout_is_read_as_its_owner_means_it_or_asked_for(propose, load_tree, case) -> None:
    tree, _, opened = propose(case.get("rows") or case["text"], name=case.get("file", "mine.jsonl"))
    asked = [key.rpartition(".")[2] for key in case.get("open", [])]
    assert sorted(line.partition(":")[0] for line in opened) == sorted(asked)
    if opened:
        with pytest.raises((DatasetError, SpecError)):
            load_tree(tree)
        return
    exams = load_tree(tree)
    assert tree["kind"] == "choice"
    assert _said(exams) == _right(case)
    assert {question.context for question in exams.questions} == {case.get("context")}, "no answer is given away"
    assert {question.image for question in exams.questions} <= {None, "x.png"}


@pytest.mark.parametrize("case", read_cases("open_layouts"))
def test_what_is_doubtful_stands_open_and_one_line_decides_it(propose, load_tree, case) -> None:
    tree, out, (line,) = propose(case["rows"])
    assert line.startswith(f"{case['key'].rpartition('.')[2]}:")
    assert case["said"] in line + out
    with pytest.raises((DatasetError, SpecError)):
        load_tree(tree)
    exams = load_tree(tree, case["edit"])
    found = {stem.removesuffix(" Again?"): (texts - {"None"}, gold) for stem, (texts, gold) in _said(exams).items()}
    assert found
    assert found.items() <= _right(case).items() or case["name"] == "no name that is known"


def test_other_columns_or_another_kind_are_asked_for_where_every_row_is_bad(propose) -> None:
    rows = [{"question": s, "context": PASSAGE, "answer": o[g]} for s, o, g in zip(STEMS, OPTIONS, GOLDS, strict=True)]
    _, out, (line,) = propose(rows, "--kind", "spans")
    assert line.startswith("kind:")
    assert "6 of 6 rows are bad: line 1, column answer: is 'Mitral'" in line + out
    assert "skip_bad" not in line


def test_a_value_that_one_row_of_many_has_is_asked_for(propose) -> None:
    rows = enumerate(_rows(answer=GOLDS.__getitem__) * 135)
    assert "ignored:" in propose([row | {"flag": n == 201} for n, row in rows])[2][0]


def test_a_stated_numbering_that_fits_fewer_rows_is_refused(load) -> None:
    rows = _rows(cop=lambda n: GOLDS[n] + 1)
    columns = {"options": list(LETTERS), "answer": "cop"}
    for skip_bad in (False, 0.9):
        with pytest.raises(DatasetError, match="numbers from 1 fit 6 rows, and numbers from 0 only 5: set"):
            load(rows, columns=columns | {"numbering": "zero"}, skip_bad=skip_bad)
    assert _said(load(rows, columns=columns | {"numbering": "one"})) == TRUE


@pytest.mark.parametrize("case", read_cases("languages"))
def test_the_language_is_told_by_the_texts(propose, case) -> None:
    rows = [{"question": stem, "options": ["x1", "x2", "x3"], "answer": "A"} for stem in case["stems"]]
    tree, out, _ = propose(rows)
    assert tree.get("language") == case["language"]
    assert "language: " in out


NO_KEY = [{"id": n, **row} for n, row in enumerate(_rows())]
TURNED = [NO_KEY[n] for n in (3, 0, 5, 1, 4, 2)]
"""Rows that are not in the order of the key."""


@pytest.mark.parametrize(
    ("name", "text", "on"),
    [
        ("key.csv", "id,answer\n" + "".join(f"{n},{LETTERS[g]}\n" for n, g in reversed([*enumerate(GOLDS)])), "id"),
        ("key.txt", "\n".join(f"{n}. {LETTERS[g]}" for n, g in enumerate(GOLDS)), "id"),
        ("key.txt", " ".join(f"{n}-{LETTERS[g].lower()}" for n, g in enumerate(GOLDS)), "id"),
        ("key.txt", "".join(LETTERS[g] for g in GOLDS), None),
        ("key.txt", "\n".join(LETTERS[g] for g in GOLDS), None),
    ],
)
def test_a_key_in_another_file_is_joined(propose, load_tree, tmp_path, name, text, on) -> None:
    _, _, opened = propose(NO_KEY)
    assert any("or set dataset.answers: {path: key.csv, on: id}" in line for line in opened)
    (tmp_path / name).write_text(text)
    tree, _, opened = propose(TURNED if on else NO_KEY, "--answers", name, *(["--on", on] if on else []))
    assert opened == []
    assert _said(load_tree(tree)) == TRUE
    wrong = text.strip()[:-1] if on is None else text.replace("0,", "9,").replace("0.", "9.").replace("0-", "9-")
    (tmp_path / name).write_text(wrong)
    said = r"holds 5 answers, and \S+ 6 rows" if on is None else "line 2, column answer of the key: is empty"
    with pytest.raises(DatasetError, match=said):
        load_tree(tree)


@pytest.mark.parametrize(
    ("rows", "key", "said"),
    [
        (NO_KEY, "id,answer\n0,A\n0,B\n1,A\n", "has two answers for id '0'"),
        ([*NO_KEY, NO_KEY[0]], "id,answer\n0,A\n1,B\n", "several rows have id '0'"),
        (NO_KEY, "id,answer\nx,A\ny,B\n", r"none of its id \(such as 'x'\) is in"),
    ],
)
def test_a_key_that_does_not_name_one_row_is_refused(load, tmp_path, rows, key, said) -> None:
    (tmp_path / "key.csv").write_text(key)
    with pytest.raises(DatasetError, match=said):
        load(rows, columns={"options": list(LETTERS)}, answers={"path": tmp_path / "key.csv", "on": "id"})


def test_null_switches_a_column_off(load) -> None:
    constants = {"id": "1", "year": "first", "split": "b"}
    rows = [{**constants, **row} for row in _rows(answer=lambda n: LETTERS[GOLDS[n]])]
    columns = {"options": list(LETTERS)}
    with pytest.raises(DatasetError, match="is 'first', not a year"):
        load(rows, "mine.csv", columns=columns)
    assert _said(load(rows, "mine.csv", columns=columns | dict.fromkeys(constants))) == TRUE
