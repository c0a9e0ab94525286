"""Multiple-choice questions of one's own: the same golds however a file writes them, and no guess about any."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError, SpecError
from medexam.questions import ExamSet
from medexam.specs import DatasetSpec, validate

STEMS = (
    "Which vitamin is ascorbic acid?",
    "Which organ makes insulin?",
    "Which cell carries oxygen?",
    "Which is a virus?",
)
OPTIONS = (
    ("Retinol", "Thiamine", "Vitamin C", "Vitamin D"),
    ("Pancreas", "Liver", "Spleen", "Kidney"),
    ("Platelet", "Neutrophil", "Lymphocyte", "Erythrocyte"),
    ("Candida", "Influenza", "Giardia", "Listeria"),
)
GOLDS = (3, 1, 4, 2)
LETTERS = ["A", "B", "C", "D"]
SPLIT_INTO = {"options": LETTERS}


def _columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The options in a column each."""
    return [{**row, **dict(zip(LETTERS, options, strict=True))} for row, options in zip(rows, OPTIONS, strict=True)]


def _answered(answers: list[Any], **more: list[Any]) -> list[dict[str, Any]]:
    rows = [{"stem": stem, "answer": answer} for stem, answer in zip(STEMS, answers, strict=True)]
    return [row | {name: values[place] for name, values in more.items()} for place, row in enumerate(rows)]


def _with_options(answers: list[Any], options: list[Any]) -> list[dict[str, Any]]:
    return _answered(answers, options=options)


def _in_stem(mark: str) -> list[dict[str, Any]]:
    marks = {"letters": "ABCD", "numbers": "1234"}[mark]
    close = {"letters": ")", "numbers": "."}[mark]
    return [
        {
            "stem": "\n".join([stem, *(f"{m}{close} {t}" for m, t in zip(marks, texts, strict=True))]),
            "answer": marks[gold - 1],
        }
        for stem, texts, gold in zip(STEMS, OPTIONS, GOLDS, strict=True)
    ]


TEXTS = [options[gold - 1] for options, gold in zip(OPTIONS, GOLDS, strict=True)]
ONE_HOT = [[int(place == gold) for place in range(1, 5)] for gold in GOLDS]
WAYS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "letters beside columns (MMLU as CSV)": (_columns(_answered(["C", "A", "D", "B"])), SPLIT_INTO),
    "lower case letters with marks": (_columns(_answered(["(c)", "a.", "d)", "b"])), SPLIT_INTO),
    "numbers from 0 beside a list (MMLU)": (_with_options([2, 0, 3, 1], list(map(list, OPTIONS))), {}),
    "numbers from 1 beside a list": (_with_options([3, 1, 4, 2], list(map(list, OPTIONS))), {}),
    "numbers from 1 as text": (_with_options(["3", "1", "4", "2"], list(map(list, OPTIONS))), {}),
    "texts": (_columns(_answered(TEXTS)), SPLIT_INTO),
    "texts in other case and spaces": (_columns(_answered([f" {text.upper()} " for text in TEXTS])), SPLIT_INTO),
    "letters beside a mapping (MedQA)": (
        _with_options(["C", "A", "D", "B"], [dict(zip(LETTERS, options, strict=True)) for options in OPTIONS]),
        {},
    ),
    "letters beside labels and texts (ARC)": (
        _with_options(["C", "A", "D", "B"], [{"text": list(options), "label": LETTERS} for options in OPTIONS]),
        {},
    ),
    "letters beside a list of mappings": (
        _with_options(
            ["C", "A", "D", "B"],
            [[{"key": k, "value": v} for k, v in zip(LETTERS, options, strict=True)] for options in OPTIONS],
        ),
        {},
    ),
    "letters beside lines of one text (CMExam)": (
        _with_options(
            ["C", "A", "D", "B"],
            ["\n".join(f"{k} {v}" for k, v in zip(LETTERS, options, strict=True)) for options in OPTIONS],
        ),
        {},
    ),
    "letters within the stem": (_in_stem("letters"), {}),
    "numbers within the stem": (_in_stem("numbers"), {}),
    "a mark for each option": (_with_options(ONE_HOT, list(map(list, OPTIONS))), {}),
    "a column of marks for each option": (
        [
            row | {f"is_{letter}": mark for letter, mark in zip(LETTERS, marks, strict=True)}
            for row, marks in zip(_columns(_answered([""] * 4)), ONE_HOT, strict=True)
        ],
        {**SPLIT_INTO, "answer": [f"is_{letter}" for letter in LETTERS]},
    ),
    "a field within a field": (
        [
            {"q": {"text": stem}, "a": {"options": list(options), "right": gold}}
            for stem, options, gold in zip(STEMS, OPTIONS, GOLDS, strict=True)
        ],
        {"question": "q.text", "options": "a.options", "answer": "a.right"},
    ),
}  # fmt: skip


def _write(path: Path, rows: list[dict[str, Any]], *, delimiter: str = ",", start: str = "") -> Path:
    path.write_text(start + _text(path, rows, delimiter), encoding="utf-8")
    return path


def _text(path: Path, rows: list[dict[str, Any]], delimiter: str) -> str:
    if path.suffix == ".jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".json":
        return json.dumps({"version": 1, "data": rows})
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(
        {name: json.dumps(value) if isinstance(value, (list, dict)) else value for name, value in row.items()}
        for row in rows
    )
    return stream.getvalue()


def _load(path: Path, columns: dict[str, Any] | None = None, **settings: Any) -> ExamSet:
    return load_exam_set(validate(DatasetSpec, {"kind": "choice", "path": path, "columns": columns or {}, **settings}))


def _golds(exams: ExamSet) -> tuple[int, ...]:
    return tuple(exams.golds[question.key].number for question in exams.questions)


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".tsv"])
@pytest.mark.parametrize("way", WAYS)
def test_questions_and_golds_are_the_same_however_they_are_written(tmp_path, way, suffix) -> None:
    rows, columns = WAYS[way]
    if "field within" in way and suffix not in {".jsonl", ".json"}:
        pytest.skip("a table of texts has no fields within fields")
    exams = _load(_write(tmp_path / f"mine{suffix}", rows, delimiter="\t" if suffix == ".tsv" else ","), columns)
    plain = _load(_write(tmp_path / "plain.csv", _columns(_answered(["C", "A", "D", "B"]))), SPLIT_INTO)
    assert _golds(exams) == GOLDS
    assert exams.questions == plain.questions
    assert (exams.fingerprint, exams.golds_fingerprint) == (plain.fingerprint, plain.golds_fingerprint)


@pytest.mark.parametrize("way", [way for way in WAYS if "marks" not in way or "list" in way])
def test_parquet_holds_the_same(tmp_path, way) -> None:
    rows, columns = WAYS[way]
    pq.write_table(pa.Table.from_pylist(rows), path := tmp_path / "mine.parquet")
    assert _golds(_load(path, columns)) == GOLDS


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_csv_file_tells_its_delimiter_and_may_begin_with_a_mark_of_its_encoding(tmp_path, delimiter) -> None:
    rows = _columns(_answered(["C", "A", "D", "B"]))
    rows[0]["stem"] = 'Which, "exactly"; is\nascorbic acid|vitamin?'
    exams = _load(_write(tmp_path / "mine.csv", rows, delimiter=delimiter, start="\ufeff"), SPLIT_INTO)
    assert exams.questions[0].stem == 'Which, "exactly"; is\nascorbic acid|vitamin?'
    (tmp_path / "mine.csv.gz").write_bytes(gzip.compress((tmp_path / "mine.csv").read_bytes()))
    assert _load(tmp_path / "mine.csv.gz", SPLIT_INTO).fingerprint == exams.fingerprint


def test_an_excel_sheet_holds_the_same(tmp_path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    rows = _columns(_answered([3, 1, 4, 2]))
    book = openpyxl.Workbook()
    book.active.append(list(rows[0]))
    for row in rows:
        book.active.append(list(row.values()))
    book.create_sheet("empty")
    book.save(tmp_path / "mine.xlsx")
    assert _golds(_load(tmp_path / "mine.xlsx", SPLIT_INTO)) == GOLDS


def test_excel_without_its_library_is_an_install_line(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    (tmp_path / "mine.xlsx").write_bytes(b"")
    with pytest.raises(DatasetError, match=r"pip install 'medexam\[excel\]'"):
        _load(tmp_path / "mine.xlsx")


@pytest.mark.parametrize(
    ("answers", "columns", "expected"),
    [
        ([2, 1, 3, 1], {"numbering": "zero"}, (3, 2, 4, 2)),
        ([2, 1, 3, 1], {"numbering": "one"}, (2, 1, 3, 1)),
        (["C", "A", "D", "B"], {"answer_as": "letter"}, GOLDS),
    ],
)
def test_a_spec_may_say_how_answers_are_read(tmp_path, answers, columns, expected) -> None:
    rows = _with_options(answers, list(map(list, OPTIONS)))
    assert _golds(_load(_write(tmp_path / "mine.jsonl", rows), columns)) == expected


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (_with_options([2, 1, 3, 1], list(map(list, OPTIONS))), "numbering: zero or one"),
        (_with_options([0, 1, 4, 1], list(map(list, OPTIONS))), "0 of line 1 can only be one of numbers from 0, and 4"),
        (
            _with_options(["4", "2", "8", "2"], [["1", "2", "4", "8", "9", "7", "6", "5"]] * 4),
            "answer_as: letter, number or text",
        ),
        (_with_options([[0, 1], [1, 0], [0, 1], [0, 1]], [["yes", "no"]] * 4), "answer_as: one_hot or number"),
        (_with_options(["X", "Y", "Z", "Q"], list(map(list, OPTIONS))), "no answer names an option; .* has 'X'"),
    ],
)
def test_what_is_ambiguous_is_asked_for(tmp_path, rows, said) -> None:
    with pytest.raises(DatasetError, match=said):
        _load(_write(tmp_path / "mine.jsonl", rows))


@pytest.mark.parametrize(
    "answer",
    ["A,C", "A; C", ["A", "C"], [1, 3], "1,3", ["Retinol", "Vitamin C"], [1, 0, 1, 0], [True, False, True, False]],
)
def test_any_of_several_right_answers_is_right(tmp_path, answer) -> None:
    rows = [{"stem": STEMS[0], "options": list(OPTIONS[0]), "answer": answer}]
    if answer in ([1, 3], "1,3"):
        rows.append({"stem": STEMS[1], "options": list(OPTIONS[1]), "answer": [4] if isinstance(answer, list) else "4"})
    exams = _load(_write(tmp_path / "mine.jsonl", rows))
    gold = exams.golds[exams.questions[0].key]
    assert [number for number in (1, 2, 3, 4, None) if gold.accepts(number)] == [1, 3]


def test_columns_fill_a_question(tmp_path) -> None:
    rows = [
        {
            "q": "Which is right?",
            **dict(zip("ab", ("Yes", "No"), strict=True)),
            "right": "b",
            "text": "A story.",
            "topic": "ethics",
            "when": "2019",
            "booklet": "spring",
            "pic": "x.png",
            "key": 17,
            "part": "validation",
            "why": "Because.",
        }
    ]
    columns = {
        "question": "q",
        "options": ["a", "b"],
        "answer": "right",
        "context": "text",
        "subject": "topic",
        "year": "when",
        "exam": "booklet",
        "image": "pic",
        "id": "key",
        "split": "part",
        "explanation": "why",
    }
    path = _write(tmp_path / "mine.jsonl", rows)
    (question,) = _load(path, columns).questions
    assert question.printed == "A story.\n\nWhich is right?\n1. Yes\n2. No"
    exam = question.exam
    assert (exam.name, exam.year, exam.discipline, exam.split) == ("spring", 2019, "ethics", "dev")
    assert (question.key, question.image, exam.independent) == ("17", "x.png", False)
    assert _load(path, columns, explained=True).questions[0].context == "A story.\n\nBecause."
    without = {name: column for name, column in columns.items() if name not in ("context", "id")}
    other = _load(path, without)
    assert other.fingerprint != _load(path, {**without, "context": "text"}).fingerprint
    assert _load(path, columns, disciplines="ethics", years=2019, split="dev").questions


def test_a_key_depends_on_neither_place_nor_name(tmp_path) -> None:
    rows = _columns(_answered(["C", "A", "D", "B"]))
    first = _load(_write(tmp_path / "mine.csv", rows), SPLIT_INTO)
    second = _load(_write(tmp_path / "other.tsv", rows[::-1], delimiter="\t"), SPLIT_INTO)
    assert {one.key: one.stem for one in first.questions} == {one.key: one.stem for one in second.questions}
    assert first.fingerprint == second.fingerprint
    assert (first.name, second.name) == ("mine", "other")
    twice = _load(_write(tmp_path / "twice.csv", [*rows, rows[0]]), SPLIT_INTO)
    assert twice.questions[-1].key == f"{twice.questions[0].key}-2"


BAD = [
    *_with_options(["C", "A", "D", "B"], list(map(list, OPTIONS))),
    {"stem": "No such letter?", "options": ["x", "y"], "answer": "D"},
    {"stem": "", "options": ["x", "y"], "answer": "A"},
    {"stem": "One option?", "options": ["x"], "answer": "A"},
    {"stem": "No answer?", "options": ["x", "y"], "answer": None},
]


def test_bad_rows_are_named_by_number_and_column(tmp_path) -> None:
    path = _write(tmp_path / "mine.json", BAD)
    with pytest.raises(DatasetError) as error:
        _load(path)
    said = str(error.value)
    assert "4 of 8 rows are bad: row 5, column answer: is 'D', which names none of its 2 options (x / y); " in said
    assert "row 6, column stem: is empty; row 7, column options: a question needs at least two" in said
    assert said.endswith("and 1 more; correct them, or set dataset.skip_bad: 0.5")
    with pytest.raises(DatasetError, match=r"skip_bad: 0\.5"):
        _load(path, skip_bad=True)
    exams = _load(path, skip_bad=0.5)
    assert len(exams.questions) == 4
    assert exams.notes[0].startswith("4 of 8 rows are left out: row 5, column answer")
    _write(path, BAD[5:])
    with pytest.raises(DatasetError, match="no question remains: name other columns or another kind") as error:
        _load(path, skip_bad=1)
    assert "skip_bad" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "stem,A,B,answer\nWhich?,x,y,A\nTorn,x\n", r"row 2 \(line 3\): has 2 cells, and the header 4"),
        ("a.csv", "stem,stem,answer\na,b,c\n", "no column stem or question: its columns are stem 1, stem 2, answer"),
        (
            "a.csv",
            "text,A,B,label\nWhich?,x,y,A\n",
            "has no column stem or question: its columns are text, A, B, label",
        ),
        ("a.jsonl", '{"stem": "Which?", "options": ["x", "y"], "answer": "B"}\n{"st', "line 2: is not JSON"),
        ("a.json", '{"one": [], "two": []}', r"an object with 2 lists \(one, two\)"),
        ("a.csv", "", "holds no row"),
        ("a.doc", "x", r"files that end in \.jsonl, "),
        ("a.parquet", "x", "not a complete Parquet file"),
    ],
)
def test_a_file_that_is_none_is_refused_by_what_is_wrong(tmp_path, name, content, said) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match=said):
        _load(tmp_path / name, {"options": ["A", "B"]} if "row 2" in said else None)


def test_a_column_that_does_not_exist_is_named_with_the_nearest(tmp_path) -> None:
    path = _write(tmp_path / "mine.csv", _columns(_answered(["C", "A", "D", "B"])))
    with pytest.raises(DatasetError, match=r"columns.stem is 'stemm', .* no such column: did you mean 'stem'"):
        _load(path, {"stem": "stemm", **SPLIT_INTO})
    with pytest.raises(DatasetError, match=r"nowhere.csv: does not exist"):
        _load(tmp_path / "nowhere.csv")


def test_the_options_of_every_question_may_stand_in_the_spec(tmp_path) -> None:
    rows = [{"question": "Is it?", "context": ["One.", "Two."], "final": "maybe"}]
    exams = _load(_write(tmp_path / "mine.jsonl", rows), {"answer": "final", "choices": ["yes", "no", "maybe"]})
    assert exams.questions[0].printed == "One.\n\nTwo.\n\nIs it?\n1. yes\n2. no\n3. maybe"
    assert _golds(exams) == (3,)


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"name": "nope"}, "no data set is called 'nope'"),
        ({"kind": "choice"}, "needs path, the file with your questions, or hub"),
        ({"kind": "choice", "path": "a.csv", "name": "headqa_v1"}, "is already used"),
        ({"columns": {"stem": "q"}}, "columns: belongs to questions of your own"),
        ({"kind": "choice", "path": "a.csv", "columns": {"stem": "q", "question": "q"}}, "are the same"),
        ({"kind": "choice", "path": "a.csv", "columns": {"option": "q"}}, "did you mean 'options'"),
        ({"kind": "short_answer", "path": "a.csv", "years": [2016]}, "years belongs to"),
    ],
)
def test_a_spec_that_cannot_be_meant_is_refused(tree, said) -> None:
    with pytest.raises(SpecError, match=said):
        validate(DatasetSpec, tree)


def test_a_data_set_of_the_hub_is_read_like_a_file(tmp_path) -> None:
    folder = tmp_path / "someone" / "exams"
    folder.mkdir(parents=True)
    _write(folder / "test.jsonl", _with_options([2, 0, 3, 1], list(map(list, OPTIONS))))
    spec = {"kind": "choice", "hub": {"id": str(folder)}}
    exams = load_exam_set(validate(DatasetSpec, spec))
    assert (_golds(exams), exams.name) == (GOLDS, "exams")


def test_a_hub_that_cannot_be_reached_says_what_to_do(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    spec = validate(DatasetSpec, {"kind": "choice", "hub": {"id": "nobody-at-all/nothing"}})
    with pytest.raises(DatasetError, match=r"cannot read nobody-at-all/nothing .*hf download .*set dataset.path"):
        load_exam_set(spec)
