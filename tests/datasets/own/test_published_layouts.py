"""Shipped declarations read the files that the authors of a benchmark give out, beside the hub's copies."""

import json
from pathlib import Path
from typing import Any

import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec, load_document, validate

QUESTIONS = [
    ("Which gland makes thyroxine?", ("Thyroid", "Thymus", "Pineal", "Parotid"), 0),
    ("Which nerve moves the diaphragm?", ("Vagus", "Phrenic", "Radial", "Ulnar"), 1),
    ("Which vessel leaves the left ventricle?", ("Vena cava", "Portal vein", "Pulmonary vein", "Aorta"), 3),
]


def medqa(stem: str, options: tuple[str, ...], right: int) -> dict[str, Any]:
    lettered = dict(zip("ABCD", options, strict=True))
    return {
        "question": stem,
        "answer": options[right],
        "options": lettered,
        "meta_info": "step1",
        "answer_idx": "ABCD"[right],
    }


def medmcqa(stem: str, options: tuple[str, ...], right: int) -> dict[str, Any]:
    columns = dict(zip(("opa", "opb", "opc", "opd"), options, strict=True))
    return {
        "id": stem,
        "question": stem,
        **columns,
        "cop": right + 1,
        "choice_type": "single",
        "subject_name": "Anatomy",
    }


def frenchmedmcqa(stem: str, options: tuple[str, ...], right: int) -> dict[str, Any]:
    answers = dict(zip("abcde", (*options, "Aucune"), strict=True))
    return {"id": stem, "question": stem, "answers": answers, "correct_answers": ["abcde"[right]]}


def igakuqa(stem: str, options: tuple[str, ...], right: int) -> dict[str, Any]:
    return {"problem_id": stem, "problem_text": stem, "choices": list(options), "answer": ["abcd"[right]]}


def golds_of(name: str, path: Path) -> list[str]:
    document = load_document(name)["dataset"]
    found = load_exam_set(validate(DatasetSpec, {**document, "path": str(path)}))
    texts = [{option.number: option.text for option in question.options} for question in found.questions]
    return [text[found.golds[one.key].number] for one, text in zip(found.questions, texts, strict=True)]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("medqa", medqa),
        ("medqa_5options", medqa),
        ("medmcqa", medmcqa),
        ("frenchmedmcqa", frenchmedmcqa),
        ("igakuqa", igakuqa),
    ],
)
def test_a_benchmarks_own_file_is_read(name: str, write, tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"
    file.write_text("".join(json.dumps(write(*question)) + "\n" for question in QUESTIONS), encoding="utf-8")
    assert golds_of(name, file) == [options[right] for _, options, right in QUESTIONS]


def test_pubmedqas_own_file_is_read(tmp_path: Path) -> None:
    file, answers = tmp_path / "ori_pqal.json", ["yes", "no", "maybe"]
    rows = {
        str(21_000_000 + 17 * number): {
            "QUESTION": f"Is it {answer}?",
            "CONTEXTS": ["It was seen."],
            "final_decision": answer,
        }
        for number, answer in enumerate(answers)
    }
    file.write_text(json.dumps(rows), encoding="utf-8")
    assert golds_of("pubmedqa", file) == answers


def test_another_file_is_refused_by_the_columns_of_the_declaration(tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"
    file.write_text(json.dumps({"text": "Which?", "right": "A"}) + "\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"columns.stem is 'sent1', and there is no such column"):
        golds_of("medqa", file)
