"""The benchmarks that ship as a declaration, on files with the field names of their published readers.

None of them was read live: the hub cannot be reached from here.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from medexam.datasets import load_exam_set
from medexam.questions import ExamSet
from medexam.specs import DatasetSpec, build_cells, load_document, parse_overrides, validate

TEXTS = ("Anterior", "Posterior", "Lateral", "Medial", "Dorsal")
GOLDS = (3, 1, 2, 3)
SHIPPED = {
    **dict.fromkeys(("medqa", "medmcqa", "careqa", "careqa_es", "mmlu"), TEXTS[:4]),
    **dict.fromkeys(("medqa_5options", "mmlu_pro_health", "medxpertqa", "frenchmedmcqa", "med_ita"), TEXTS),
    **dict.fromkeys(("igakuqa", "cmexam"), TEXTS),
    **dict.fromkeys(("headqa_en", "headqa_es", "global_mmlu"), TEXTS[:4]),
    "pubmedqa": ("yes", "no", "maybe"),
}
"""Name -> the options of each question in the file that the test writes."""


def _columns(*names: str) -> dict[str, str]:
    return dict(zip(names, TEXTS, strict=False))


def _lettered(letters: str) -> dict[str, str]:
    return _columns(*letters)


def _row(name: str, place: int) -> dict[str, object]:
    stem, gold = f"Question {place}?", GOLDS[place]
    zero, letter, four = gold - 1, "ABCDE"[gold - 1], list(TEXTS[:4])
    careqa = {"exam_id": 36, "question": stem, "cop": gold, "year": 2024, "category": "Medicine"}
    careqa |= {"unique_id": f"c{place}", **_columns("op1", "op2", "op3", "op4")}
    headqa = {"name": "Cuaderno_2016_1_B", "year": "2016", "category": "biology", "qid": place + 1, "qtext": stem}
    headqa |= {"ra": gold, "image": None}
    headqa |= {"answers": [{"aid": number, "atext": text} for number, text in enumerate(four, start=1)]}
    contexts = {"contexts": ["First part.", "Second part."], "labels": ["BACKGROUND", "RESULTS"], "meshes": ["Adult"]}
    rows: dict[str, dict[str, object]] = {
        "medqa": {"id": f"t{place}", "sent1": stem, "sent2": "", "label": zero}
        | _columns("ending0", "ending1", "ending2", "ending3"),
        "medqa_5options": {"index": place, "source_index": place, "question": stem, "answer": letter}
        | {"options": _lettered("ABCDE") | {"F": "", "G": ""}, "meta_info": "step1"},
        "medmcqa": {"id": f"m{place}", "question": stem, "cop": zero, "choice_type": "single", "exp": "For."}
        | {"subject_name": "Anatomy", "topic_name": None, **_columns("opa", "opb", "opc", "opd")},
        "careqa": careqa,
        "careqa_es": careqa,
        "mmlu": {"question": stem, "subject": "anatomy", "choices": four, "answer": zero},
        "mmlu_pro_health": {"question_id": 5000 + place, "question": stem, "options": list(TEXTS), "answer": letter}
        | {"answer_index": zero, "cot_content": "", "category": "health", "src": "ori_mmlu-anatomy"},
        "medxpertqa": {"id": f"Text-{place}", "question": stem, "options": _lettered("ABCDE"), "label": letter}
        | {"medical_task": "Diagnosis", "body_system": "Nervous", "question_type": "Reasoning"},
        "pubmedqa": {"pubid": 21645374 + place, "question": stem, "context": contexts, "long_answer": "So it is."}
        | {"final_decision": ("yes", "no", "maybe")[zero]},
        "frenchmedmcqa": {"id": f"f{place}", "question": stem, "correct_answers": zero, "number_correct_answers": 0}
        | _columns("answer_a", "answer_b", "answer_c", "answer_d", "answer_e"),
        "headqa_en": headqa,
        "headqa_es": headqa,
        "med_ita": {"question": stem, "options": [{key: text} for key, text in _lettered("ABCDE").items()]}
        | {"answer": letter}
        | {"category": "Neurologia", "macrocategory": "Clinica"},
        "igakuqa": {"problem_id": f"116A{place}", "problem_text": stem, "choices": list(TEXTS), "text_only": True}
        | {"answer": [letter.lower()], "points": "1"},
        "cmexam": {"Question": stem, "Answer": letter, "Explanation": "For."}
        | {"Options": [{"key": key, "value": text} for key, text in _lettered("ABCDE").items()]},
        "global_mmlu": {"sample_id": f"anatomy/test/{place}", "subject": "anatomy", "subject_category": "Medical"}
        | {"question": stem, "answer": letter, **_columns("option_a", "option_b", "option_c", "option_d")},
    }
    return rows[name]


def _load(name: str, path: Path, rows: Sequence[dict[str, object]]) -> ExamSet:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return load_exam_set(validate(DatasetSpec, {**load_document(name)["dataset"], "path": path}))


@pytest.mark.parametrize("name", SHIPPED)
def test_golds_are_those_of_the_file(tmp_path, name) -> None:
    path = tmp_path / "copy.jsonl"
    exams = _load(name, path, [_row(name, place) for place in range(4)])
    assert tuple(exams.golds[question.key].number for question in exams.questions) == GOLDS
    assert all(exams.golds[question.key].others == () for question in exams.questions)
    assert all(tuple(option.text for option in one.options) == SHIPPED[name] for one in exams.questions)
    assert (exams.name, bool(exams.citation)) == (name, True)
    published = load_document(name)["dataset"]["published"].get("questions")
    said = f"{path} holds 4 questions, and {published:,} are published" if published else None
    assert exams.notes == ((said,) if said else ())


@pytest.mark.parametrize(
    ("name", "column"), [("mmlu_pro_health", "category"), ("global_mmlu", "subject"), ("mmlu", "subject")]
)
def test_only_the_named_subjects_are_asked(tmp_path, name, column) -> None:
    other = _row(name, 3) | {column: "law"}
    exams = _load(name, tmp_path / "copy.jsonl", [*(_row(name, place) for place in range(3)), other])
    assert [question.stem for question in exams.questions] == ["Question 0?", "Question 1?", "Question 2?"]


@pytest.mark.parametrize(
    "options",
    [_lettered("ABCDE"), [dict.fromkeys("ABCDE") | {letter: text} for letter, text in _lettered("ABCDE").items()]],
)
def test_lettered_options_are_read_as_the_hub_may_give_them(tmp_path, options) -> None:
    exams = _load(
        "med_ita", tmp_path / "copy.jsonl", [_row("med_ita", place) | {"options": options} for place in (0, 1)]
    )
    assert [tuple(option.text for option in one.options) for one in exams.questions] == [TEXTS, TEXTS]
    assert [exams.golds[one.key].number for one in exams.questions] == [3, 1]


@pytest.mark.parametrize(
    ("name", "several", "bad"),
    [
        ("igakuqa", {"answer": ["b", "e"]}, {"choices": [], "answer": ["47"]}),
        ("cmexam", {"Answer": "ACE"}, {"Answer": None}),
    ],
)
def test_questions_that_want_several_answers_are_left_out_and_counted(tmp_path, name, several, bad) -> None:
    rows = [_row(name, 0), _row(name, 1) | several, *[_row(name, 2)] * 17, _row(name, 3) | bad]
    exams = _load(name, tmp_path / "copy.jsonl", rows)
    assert [question.stem for question in exams.questions] == ["Question 0?", *["Question 2?"] * 17]
    assert len(exams.left_out) == 1
    assert any("1 of 20 rows is left out" in note for note in exams.notes)
    assert any("1 of 20 questions are left out, because they need several" in note for note in exams.notes)


def test_an_abstract_stands_before_its_question(tmp_path) -> None:
    exams = _load("pubmedqa", tmp_path / "copy.jsonl", [_row("pubmedqa", 0)])
    assert exams.questions[0].context == "First part.\n\nSecond part."


@pytest.mark.parametrize("name", SHIPPED)
def test_the_page_lists_what_ships(name) -> None:
    page = (Path(__file__).parents[3] / "docs/benchmarks.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith(f"- `{name}`: ") and "; " in line)
    tree = load_document(name)["dataset"]
    assert f"`{tree['hub']['id']}`" in row
    assert f"{tree['published'].get('questions', 0):,}" in row
    assert f"; {tree['published'].get('licence', 'not stated')}; " in row


def test_a_copy_is_read_instead_of_the_hub(tmp_path) -> None:
    _, (cell,) = build_cells(load_document("medqa"), parse_overrides([f"dataset.path={tmp_path}/x.jsonl"]))
    assert (cell.dataset.name, str(cell.dataset.path)) == ("medqa", f"{tmp_path}/x.jsonl")
    assert cell.dataset.whole.published == cell.dataset.published
