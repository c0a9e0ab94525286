"""What `medexam data init` proposes for other people's files: the golds that their owners mean, or an open line."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layouts import draw_layout, write_layout
from medexam.datasets import load_exam_set
from medexam.datasets.own.proposals.drafts import Proposal
from medexam.datasets.own.proposals.proposing import dataset_lines, propose
from medexam.errors import DatasetError, SpecError
from medexam.questions import ExamSet
from medexam.specs import DatasetSpec, validate
from medexam.specs.columns import KeySpec

STEMS = (
    "Which valve stands between the left chambers?",
    "Which hormone lowers the sugar in the blood?",
    "Which of these is the longest nerve?",
    "Which gas binds to haemoglobin the most?",
    "Which layer of the skin is the outer one?",
    "Which bone holds the tongue?",
)
OPTIONS = (
    ("Aortic", "Mitral", "Tricuspid", "Pulmonary"),
    ("Glucagon", "Cortisol", "Adrenaline", "Insulin"),
    ("Sciatic", "Vagus", "Ulnar", "Radial"),
    ("Oxygen", "Nitrogen", "Carbon monoxide", "Helium"),
    ("Dermis", "Hypodermis", "Epidermis", "Fascia"),
    ("Hyoid", "Stapes", "Vomer", "Atlas"),
)
GOLDS = (1, 3, 0, 2, 2, 0)
"""Places from 0."""
L = "ABCD"
ROWS = tuple(zip(STEMS, OPTIONS, GOLDS, strict=True))
PASSAGE = "A woman of 40 years comes with pain that began two days ago."


def _wrong(options: tuple[str, ...], gold: int) -> list[str]:
    return [text for text in options if text != options[gold]]


def _cols(options: tuple[str, ...], name: str = "{}", labels: Any = L) -> dict[str, str]:
    return {name.format(label): text for label, text in zip(labels, options, strict=False)}


def _marked(options: tuple[str, ...], mark: str = "{}) {}", apart: str = "\n", labels: str = L) -> str:
    return apart.join(mark.format(label, text) for label, text in zip(labels, options, strict=False))


def _starred(options: tuple[str, ...], gold: int, mark: str = "{}) {}") -> str:
    lines = _marked(options, mark).split("\n")
    return "\n".join(f"*{line}" if place == gold else line for place, line in enumerate(lines))


RIGHT: dict[str, list[dict[str, Any]]] = {
    "a list beside an index": [{"question": s, "answers": list(o), "correct": g} for s, o, g in ROWS],
    "records with their own numbers": [
        {"qtext": s, "ra": g + 1, "image": "", "answers": [{"aid": n, "atext": t} for n, t in enumerate(o, 1)]}
        for s, o, g in ROWS
    ],
    "a mapping under option": [{"question": s, "answer": L[g], "option": _cols(o)} for s, o, g in ROWS],
    "a mapping in a text": [
        {"question": s, "answer_options": json.dumps(_cols(o, "option{}", "1234")), "correct_answer": f"option{g + 1}"}
        for s, o, g in ROWS
    ],
    "one name for all options, as pandas tells them apart": [
        {"question": s, **dict(zip(("option", "option.1", "option.2", "option.3"), o, strict=True)), "answer": L[g]}
        for s, o, g in ROWS
    ],
    "candidates": [{"query": s, "candidates": list(o), "gold": o[g]} for s, o, g in ROWS],
    "wrong options in a list": [
        {"question": s, "correct_answer": o[g], "incorrect_answers": _wrong(o, g)} for s, o, g in ROWS
    ],
    "wrong options in columns": [
        {"stem": s, "key": o[g], **{f"distractor{n}": t for n, t in enumerate(_wrong(o, g), 1)}} for s, o, g in ROWS
    ],
    "options behind line breaks of HTML": [
        {"question": f"{s}<br>{_marked(o, apart='<br>')}", "answer": L[g]} for s, o, g in ROWS
    ],
    "options in the question and in columns": [
        {"question": f"{s} {_marked(o, apart=' ')}", **_cols(o), "answer": L[g]} for s, o, g in ROWS
    ],
    "a prompt and its completion": [
        {"prompt": f"{s}\n{_marked(o, '{}. {}')}\nAnswer:", "completion": f" {L[g]}"} for s, o, g in ROWS
    ],
    "options in one line": [{"Question": s, "Choices": _marked(o, apart=", "), "Answer": L[g]} for s, o, g in ROWS],
    "options between bars": [{"question": s, "options": "|".join(o), "answer": L[g]} for s, o, g in ROWS],
    "letters out of order": [
        {"question": s, "options": [f"{L[n]}: {o[n]}" for n in (2, 0, 1, 3)], "answer": L[g]} for s, o, g in ROWS
    ],
    "letters out of order in a cell": [
        {"question": s, "options": "\n".join(f"{L[n]}) {o[n]}" for n in (2, 0, 1, 3)), "answer": L[g]}
        for s, o, g in ROWS
    ],
    "labels and texts": [
        {"question_stem": s, "choices": {"text": list(o), "label": list(L)}, "answerKey": L[g]} for s, o, g in ROWS
    ],
    "pairs": [
        {"question": s, "options": [[k, t] for k, t in zip(L, o, strict=True)], "answer": L[g]} for s, o, g in ROWS
    ],
    "records within records": [
        {"id": n, "data": {"Question": s, "Options": _cols(o), "Correct Answer": o[g], "Correct Option": L[g]}}
        for n, (s, o, g) in enumerate(ROWS)
    ],
    "a question with its choices": [
        {"question": {"stem": s, "choices": [{"text": t, "label": k} for k, t in _cols(o).items()]}, "answerKey": L[g]}
        for s, o, g in ROWS
    ],
    "choices with ids": [
        {
            "question_text": s,
            "options": [{"id": f"{n}-{k}", "body": t} for k, t in enumerate(o)],
            "correct_option_id": f"{n}-{g}",
        }
        for n, (s, o, g) in enumerate(ROWS)
    ],
    "an answer of letter and text": [
        {"question": s, "choices": list(o), "answer": {"label": L[g], "text": o[g]}} for s, o, g in ROWS
    ],
    "marks at the options": [
        {"question": s, "options": [{"text": t, "isCorrect": n == g} for n, t in enumerate(o)]} for s, o, g in ROWS
    ],
    "shares at the answers": [
        {"questiontext": s, "answer": [{"text": t, "fraction": "100" if n == g else "0"} for n, t in enumerate(o)]}
        for s, o, g in ROWS
    ],
    "marks beside the options": [
        {"question": s, "targets": {"choices": list(o), "labels": [int(n == g) for n in range(4)]}} for s, o, g in ROWS
    ],
    "columns of marks": [
        {"question": s, **_cols(o, "option_{}", "1234"), **{f"is_correct_{n + 1}": int(n == g) for n in range(4)}}
        for s, o, g in ROWS
    ],
    "a star before the letter": [{"question": s, "options": _starred(o, g)} for s, o, g in ROWS],
    "a star in the question": [{"question": f"{s}\n{_starred(o, g)}"} for s, o, g in ROWS],
    "the word correct": [
        {"question": s, "options": [f"{t} (correct)" if n == g else t for n, t in enumerate(o)]} for s, o, g in ROWS
    ],
    "letters in the answer too": [
        {"question": s, "options": [f"{k}) {t}" for k, t in _cols(o).items()], "answer": f"{L[g]}) {o[g]}"}
        for s, o, g in ROWS
    ],
    "letters in columns": [
        {"question": s, **{k: f"{k}. {t}" for k, t in _cols(o).items()}, "answer": L[g].lower()} for s, o, g in ROWS
    ],
    "a letter and the text": [
        {"Question": s, **_cols(o, "Option {}"), "Correct answer": f"{L[g]}. {o[g]}"} for s, o, g in ROWS
    ],
    "the name of a column": [
        {"question": s, **_cols(o, "Option {}"), "Correct Option": f"Option {L[g]}"} for s, o, g in ROWS
    ],
    "numbers as pandas writes them": [{"question": s, **_cols(o), "answer": f"{g + 1}.0"} for s, o, g in ROWS],
    "numbers in circles": [
        {"問題": s, "選択肢": _marked(o, "{} {}", labels="①②③④"), "正解": "①②③④"[g]} for s, o, g in ROWS
    ],
    "roman numbers": [
        {"question": s, **_cols(o, labels=("i", "ii", "iii", "iv")), "answer": ("i", "ii", "iii", "iv")[g]}
        for s, o, g in ROWS
    ],
    "a limit within the names": [
        {
            "Question - max 120 characters": s,
            **_cols(o, "Answer {} - max 75 characters", "1234"),
            "Time limit (sec), 5, 10 or 20": 20,
            "Correct answer(s) - choose at least one": g + 1,
        }
        for s, o, g in ROWS
    ],
    "an empty fifth option": [{"question": s, **_cols(o), "E": "nan", "answer": L[g]} for s, o, g in ROWS],
    "a fifth option that is a dash": [{"question": s, **_cols(o), "E": "-", "answer": L[g]} for s, o, g in ROWS],
    "ids that begin anew": [
        {"id": n % 3, "question": s, **_cols(o), "answer": L[g]} for n, (s, o, g) in enumerate(ROWS)
    ],
    "years that are none": [{"question": s, **_cols(o), "answer": L[g], "year": "2022/1"} for s, o, g in ROWS],
    "splits that are none": [{"question": s, **_cols(o), "answer": L[g], "split": "exam 1"} for s, o, g in ROWS],
    "flags for pictures": [{"question": s, **_cols(o), "answer": L[g], "image": "False"} for s, o, g in ROWS],
    "a context that gives the answer away": [
        {"question": s, **_cols(o), "answer": L[g], "context": f"Correct: {L[g]}. As in the book."} for s, o, g in ROWS
    ],
    "a text that gives the answer away": [
        {"question": s, **_cols(o), "answer": L[g], "text": f"The answer is {o[g]} because."} for s, o, g in ROWS
    ],
    "two columns that agree": [
        {"question": s, "options": list(o), "answer": L[g], "answer_index": g, "solution": o[g]} for s, o, g in ROWS
    ],
    "numbers of questions beside their text": [
        {"Question": f"Q{n}", "Text": s, **_cols(o), "Key": L[g]} for n, (s, o, g) in enumerate(ROWS)
    ],
    "a letter, a dash and the text": [{"question": s, **_cols(o), "answer": f"{L[g]} - {o[g]}"} for s, o, g in ROWS],
    "the text and a letter": [{"question": s, **_cols(o), "answer": f"{o[g]} ({L[g]})"} for s, o, g in ROWS],
    "a sentence": [{"question": s, **_cols(o), "answer": f"The correct answer is {L[g]}."} for s, o, g in ROWS],
    "Greek letters": [{"question": s, **_cols(o, labels="αβγδ"), "answer": "αβγδ"[g]} for s, o, g in ROWS],
    "a column called options that holds none": [
        {"question": f"{s}\n{_marked(o)}", "options": 4, "answer": L[g]} for s, o, g in ROWS
    ],
    "no names, numbers": [dict(enumerate([s, *o, g + 1], 1)) for s, o, g in ROWS],
    "no names, letters, more columns": [dict(enumerate([n, s, *o, L[g], "x"], 1)) for n, (s, o, g) in enumerate(ROWS)],
}
"""Layout -> the rows of a file that has to be read without an edit."""
LANGUAGES = (
    ("Pregunta", "Respuesta {}", "Correcta"),
    ("enunciado", "opcion_{}", "respuesta_correcta"),
    ("Enunciado", "Alternativa {}", "Gabarito"),
    ("Énoncé", "Proposition {}", "Bonne réponse"),
    ("Frage", "Antwort {}", "Richtige Antwort"),
    ("Domanda", "Risposta {}", "Risposta esatta"),
    ("Вопрос", "Вариант {}", "Правильный ответ"),
    ("questionText", "choice{}", "correctAnswer"),
    ("quesiton", "{}", "anwser"),
)
RIGHT |= {
    f"names such as {answer}": [{stem: s, **_cols(o, option), answer: L[g]} for s, o, g in ROWS]
    for stem, option, answer in LANGUAGES
}


def _write(folder: Path, rows: list[dict[Any, Any]], name: str = "mine.jsonl") -> Path:
    path = folder / name
    if name.endswith(".csv"):
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        path.write_text(stream.getvalue(), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _load(proposal: Proposal, path: Path, **changes: Any) -> ExamSet:
    """The questions of the spec as it is written, after the edits that a user makes."""
    tree = yaml.safe_load("\n".join(dataset_lines(proposal, path)))
    tree["columns"] |= changes.pop("columns", {})
    return load_exam_set(validate(DatasetSpec, tree | changes))


def _said(exams: ExamSet) -> dict[str, tuple[set[str], set[str]]]:
    """Stem -> the options, and those that are right."""
    found = {}
    for question in exams.questions:
        texts = {option.number: option.text for option in question.options}
        gold = exams.golds[question.key]
        found[question.stem] = (set(texts.values()), {texts[number] for number in (gold.number, *gold.others)})
    return found


TRUE = {s: (set(o), {o[g]}) for s, o, g in ROWS}


@pytest.mark.parametrize("layout", RIGHT)
def test_a_layout_is_read_as_its_owner_means_it(tmp_path, layout) -> None:
    path = _write(tmp_path, RIGHT[layout])
    proposal = propose(path)
    assert (proposal.kind, proposal.open) == ("choice", {}), proposal.notes
    exams = _load(proposal, path)
    assert _said(exams) == TRUE
    assert {question.context for question in exams.questions} == {None}
    assert {question.image for question in exams.questions} == {None}
    assert "6 rows of 4 options" in proposal.notes


OPEN: dict[str, tuple[list[dict[str, Any]], str, str, dict[str, Any]]] = {
    "two columns contradict": (
        [
            {"question": s, "options": _cols(o), "answer": o[g], "answer_idx": L[(g + (n == 2)) % 4]}
            for n, (s, o, g) in enumerate(ROWS)
        ],
        "columns.answer",
        "answer or answer_idx: they contradict each other in 1 of 6 rows, such as line 3, where answer says",
        {"columns": {"answer": "answer"}},
    ),
    "a model's answers": (
        [
            {"question": s, **_cols(o), "answer": L[g], "model_answer": L[(g + n) % 4]}
            for n, (s, o, g) in enumerate(ROWS)
        ],
        "columns.answer",
        "answer or model_answer: they contradict",
        {"columns": {"answer": "answer"}},
    ),
    "numbers that may begin at 0 or 1": (
        [{"question": s, **_cols(o), "E": "None", "answer": g + 1} for s, o, g in ROWS],
        "columns.numbering",
        "zero or one: 2 of line 1 is option 3 as numbers from 0, 2 as numbers from 1",
        {"columns": {"numbering": "one"}},
    ),
    "several right answers": (
        [{"question": s, **_cols(o), "answer": L[g] if n else "BA"} for n, (s, o, g) in enumerate(ROWS)],
        "columns.several",
        "any, if one of them is enough, or all: 1 of 6 questions have several right answers",
        {"columns": {"several": "any"}},
    ),
    "a row without an answer": (
        [{"question": s, **_cols(o), "answer": L[g] if n else "Anulada"} for n, (s, o, g) in enumerate(ROWS)],
        "skip_bad",
        "correct them, or set dataset.skip_bad: 0.17: 1 of 6 rows is bad: line 1, column answer: is 'Anulada'",
        {"skip_bad": 0.17},
    ),
    "a list within a column": (
        [
            {"question": s, **_cols(o), "B": o[1] if n else ["x", "y"], "answer": L[g]}
            for n, (s, o, g) in enumerate(ROWS)
        ],
        "skip_bad",
        "line 1, column B: holds ['x', 'y'], which is not the text of an option",
        {"skip_bad": 0.2},
    ),
    "letters with a gap": (
        [
            {
                "question": s,
                "options": [f"{'ABCE'[k] if not n else L[k]}) {t}" for k, t in enumerate(o)],
                "answer": L[g],
            }
            for n, (s, o, g) in enumerate(ROWS)
        ],
        "skip_bad",
        "has options with the letters A, B, C, E, which are not in order",
        {"skip_bad": 0.2},
    ),
    "letters with a gap in a cell": (
        [
            {"question": s, "options": _marked(o, labels="ABCE" if not n else L), "answer": L[g]}
            for n, (s, o, g) in enumerate(ROWS)
        ],
        "skip_bad",
        "holds options with the letters A, B, C, E, which are not in order",
        {"skip_bad": 0.2},
    ),
    "a wrapped line": (
        [
            {
                "question": s,
                "options": [
                    *_marked(o).split("\n")[:1],
                    *(["continued"] if not n else []),
                    *_marked(o).split("\n")[1:],
                ],
                "answer": L[g],
            }
            for n, (s, o, g) in enumerate(ROWS)
        ],
        "skip_bad",
        "has options with the letters A, none, B, C, D, which are not in order",
        {"skip_bad": 0.2},
    ),
    "one question without options": (
        [
            {"question": f"{s}\n{_marked(o)}" if n else s, "answer": L[g]}
            for n, (s, o, g) in enumerate([*ROWS, *((f"{s} Again?", o, g) for s, o, g in ROWS)])
        ],
        "skip_bad",
        "neither the question nor a column has options after letters or numbers",
        {"skip_bad": 0.1},
    ),
    "labels in half of the rows": (
        [
            {"question": s, "options": [f"{L[k]}) {t}" if n > 1 else t for k, t in enumerate(o)], "answer": L[g]}
            for n, (s, o, g) in enumerate(ROWS)
        ],
        "columns.marks",
        "labels or text: the options of 4 rows begin with letters or numbers in order, and those of 2 do not",
        {"columns": {"marks": "labels", "answer": "answer"}},
    ),
    "no name that is known": (
        [{"a": s, "b": _marked(o), "c": L[(g + 1) % 2]} for s, o, g in ROWS],
        "columns.answer",
        "which column holds the right answer: c",
        {"columns": {"answer": "c"}},
    ),
}
"""Layout -> rows, the line of the spec that is open, what it says, and the edit."""


@pytest.mark.parametrize("layout", OPEN)
def test_what_is_doubtful_stands_open_and_one_line_decides_it(tmp_path, layout) -> None:
    rows, key, said, edit = OPEN[layout]
    path = _write(tmp_path, rows)
    proposal = propose(path)
    assert said in proposal.open[key]
    (line,) = [line for line in dataset_lines(proposal, path) if "# decide: " in line]
    assert line.strip().startswith(f"{key.rpartition('.')[2]}:")
    with pytest.raises((DatasetError, SpecError)):
        _load(proposal, path)
    exams = _load(proposal, path, **edit)
    known = TRUE if "right answers" not in layout else TRUE | {STEMS[0]: (set(OPTIONS[0]), {"Aortic", "Mitral"})}
    found = {stem: (options - {"None"}, right) for stem, (options, right) in _said(exams).items()}
    if layout != "no name that is known":
        assert all(known[stem.removesuffix(" Again?")] == told for stem, told in found.items())


@pytest.mark.parametrize(
    "rows",
    [
        [{"question": s, "answer": L[g]} for s, _, g in ROWS],
        [{"question": s, "answer": g + 1} for s, _, g in ROWS],
        [{"question": s, "things": list(o), "answer": "x y"} for s, o, _ in ROWS],
        [{"question": f"{s} {n}", "answer": o[0]} for n in range(5) for s, o, _ in ROWS[:3]],
        [{"question": s, "options": "; ".join(o[: 2 + n % 3]), "answer": o[0]} for n, (s, o, _) in enumerate(ROWS)],
    ],
)
def test_what_looks_like_a_choice_is_not_taken_for_words(tmp_path, rows) -> None:
    proposal = propose(_write(tmp_path, rows))
    assert proposal.kind == "choice"
    assert "or set kind: short_answer" in proposal.open["columns.options"]


def test_few_words_that_are_always_the_same_are_options(tmp_path) -> None:
    rows = [
        {"QUESTION": s, "CONTEXTS": [PASSAGE, "And more."], "final_decision": w}
        for s, w in zip(STEMS, ("yes", "no", "maybe") * 2, strict=True)
    ]
    proposal = propose(_write(tmp_path, rows))
    assert (proposal.open, proposal.columns["choices"]) == ({}, ["yes", "no", "maybe"])
    assert [row.gold for row in proposal.rows] == [1, 2, 3] * 2
    assert proposal.rows[0].question.context == f"{PASSAGE}\n\nAnd more."


def test_texts_that_begin_like_labels_are_kept(tmp_path) -> None:
    rows = [{"question": s, "options": list(o), "answer": L[g]} for s, o, g in ROWS]
    rows[0] |= {"options": ["A. fumigatus", "B. dermatitidis", "C. immitis"]}
    rows[1] |= {"options": ["1) and 2)", "2) and 3)", "3) alone", "none"]}
    proposal = propose(_write(tmp_path, rows))
    assert proposal.open == {}
    assert [option.text for option in proposal.rows[0].question.options] == rows[0]["options"]
    assert [option.text for option in proposal.rows[1].question.options] == rows[1]["options"]
    assert "5 rows of 4, 1 of 3 options" in proposal.notes


def test_plus_and_minus_are_options(tmp_path) -> None:
    rows = [
        {"question": s, "A": "+", "B": "-", "C": "±", "D": "-" if n else "", "answer": "AB"[n % 2]}
        for n, s in enumerate(STEMS)
    ]
    proposal = propose(_write(tmp_path, rows))
    assert [option.text for option in proposal.rows[0].question.options] == ["+", "-", "±"]


def test_words_for_nothing_are_no_options_and_noradrenaline_is_one(tmp_path) -> None:
    rows = [{"question": s, "A": "x", "B": "NA", "C": "None", "D": "#N/A", "answer": "A"} for s in STEMS]
    proposal = propose(_write(tmp_path, rows))
    assert [option.text for option in proposal.rows[0].question.options] == ["x", "NA", "None"]


def test_other_columns_or_another_kind_are_asked_for_where_every_row_is_bad(tmp_path) -> None:
    path = _write(tmp_path, [{"question": s, "context": PASSAGE, "answer": o[g]} for s, o, g in ROWS])
    proposal = propose(path, "spans")
    assert list(proposal.open) == ["kind"]
    assert "6 of 6 rows are bad: line 1, column answer: is 'Mitral'" in proposal.open["kind"]
    assert "skip_bad" not in "".join(dataset_lines(proposal, path))


def test_a_stated_numbering_that_fits_fewer_rows_is_refused(tmp_path) -> None:
    path = _write(tmp_path, [{"question": s, **_cols(o), "cop": g + 1} for s, o, g in ROWS])
    tree = {"kind": "choice", "path": path, "columns": {"options": list(L), "answer": "cop", "numbering": "zero"}}
    for skip_bad in (False, True, 0.9):
        with pytest.raises(
            DatasetError, match=r"counting from 1 fits all 6 rows, and from 0 only 5: set columns: \{numbering: one\}"
        ):
            load_exam_set(validate(DatasetSpec, {**tree, "skip_bad": skip_bad}))
    tree["columns"] |= {"numbering": "one"}
    assert _said(load_exam_set(validate(DatasetSpec, tree))) == TRUE


@pytest.mark.parametrize(
    ("stems", "language"),
    [
        (("¿Cuál de las siguientes es la válvula?", "¿Qué hormona baja la glucosa en la sangre?"), "es"),
        (("Quale delle seguenti è la valvola?", "Quale ormone abbassa il glucosio nel sangue?"), "it"),
        (("Parmi les valves suivantes, laquelle est à gauche ?", "Quelle hormone est dans le sang ?"), "fr"),
        (("Cal das seguintes non é unha válvula?", "Que hormona baixa a glicosa no sangue?"), "gl"),
        (("Какой из следующих клапанов", "Какой гормон понижает уровень"), "ru"),
        (("左心の弁はどれか。", "血糖を下げるホルモンはどれか。"), "ja"),
        (("左心的瓣膜是哪个", "哪种激素降低血糖"), "zh"),
        (("Qual das seguintes não é uma válvula?", "Que hormona baixa a glicose no sangue?"), None),
        (("Welche der folgenden ist eine Klappe?", "Welches Hormon ist im Blut?"), None),
    ],
)
def test_the_language_is_told_by_the_texts(tmp_path, stems, language) -> None:
    rows = [{"question": stem, "options": ["x1", "x2", "x3"], "answer": "ABC"[n]} for n, stem in enumerate(stems)]
    proposal = propose(path := _write(tmp_path, rows))
    assert proposal.language == language
    assert (f"language: {language}" in dataset_lines(proposal, path)) == (language is not None)
    assert any(line.startswith("language: ") for line in proposal.notes)


@pytest.mark.parametrize(
    ("name", "text", "on"),
    [
        ("key.csv", "id,answer\n" + "".join(f"{n},{L[g]}\n" for n, g in reversed(list(enumerate(GOLDS)))), "id"),
        ("key.csv", "No,Correct\n" + "".join(f"{n},{g + 1}\n" for n, g in enumerate(GOLDS)), ("id", "No")),
        ("key.txt", "\n".join(f"{n}. {L[g]}" for n, g in enumerate(GOLDS)), "id"),
        ("key.txt", " ".join(f"{n}-{L[g].lower()}" for n, g in enumerate(GOLDS)), "id"),
        ("key.txt", "".join(L[g] for g in GOLDS), None),
        ("key.txt", "\n".join(L[g] for g in GOLDS), None),
    ],
)
def test_a_key_in_another_file_is_joined(tmp_path, name, text, on) -> None:
    path = _write(tmp_path, [{"id": n, "question": s, **_cols(o)} for n, (s, o, _) in enumerate(ROWS)])
    open_ = propose(path)
    assert "or set dataset.answers: {path: key.csv, on: id}" in open_.open["columns.answer"]
    (tmp_path / name).write_text(text)
    proposal = propose(path, answers=KeySpec(path=tmp_path / name, on=on))
    assert proposal.open == {}
    assert _said(_load(proposal, path)) == TRUE
    if on is None:
        (tmp_path / name).write_text(text.strip()[:-1])
        with pytest.raises(DatasetError, match=r"holds 5 answers, and \S+ 6 rows"):
            _load(proposal, path)
    else:
        (tmp_path / name).write_text(text.replace("0,", "9,").replace("0.", "9.").replace("0-", "9-"))
        with pytest.raises(DatasetError, match="1 of 6 rows is bad: line 1, column answer of the key: is empty"):
            _load(proposal, path)


def test_a_list_of_letters_is_a_key(tmp_path) -> None:
    path = _write(tmp_path, [{"question": s, **_cols(o)} for s, o, _ in ROWS])
    tree = {"kind": "choice", "path": path, "columns": {"options": list(L)}}
    for answers in ([L[g] for g in GOLDS], "".join(L[g] for g in GOLDS)):
        assert _said(load_exam_set(validate(DatasetSpec, {**tree, "answers": answers}))) == TRUE
    with pytest.raises(SpecError, match="a key is a path or a list of answers"):
        validate(DatasetSpec, {**tree, "answers": {}})


def test_null_switches_a_column_off(tmp_path) -> None:
    rows = [{"id": "1", "year": "first", "split": "b", "question": s, **_cols(o), "answer": L[g]} for s, o, g in ROWS]
    path = _write(tmp_path, rows, "mine.csv")
    tree = {"kind": "choice", "path": path, "columns": {"options": list(L)}}
    with pytest.raises(DatasetError, match="is 'first', not a year"):
        load_exam_set(validate(DatasetSpec, tree))
    spec = validate(DatasetSpec, tree | {"columns": {**tree["columns"], "id": None, "year": None, "split": None}})
    assert _said(load_exam_set(spec)) == TRUE
    again = validate(DatasetSpec, json.loads(spec.model_dump_json()))
    assert again == spec
    assert spec.columns.model_dump()["id"] is None


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.integers(min_value=0, max_value=10**9))
def test_drawn_files_are_read_as_they_are_known_or_asked_for(tmp_path_factory, seed) -> None:
    layout = draw_layout(seed)
    path = write_layout(layout, tmp_path_factory.mktemp("drawn"))
    proposal = propose(path)
    if proposal.open:
        return
    assert proposal.kind == "choice", layout.told
    known = {each.stem: (set(each.options), {each.options[place] for place in each.right}) for each in layout.known}
    exams = _load(proposal, path)
    assert _said(exams) == known, layout.told
    assert {question.context for question in exams.questions} == {None}
    assert {question.image for question in exams.questions} <= {None, "x.png"}
