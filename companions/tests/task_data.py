"""Small files of the benchmarks that are answered in words, written by hand in their authors' form."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

Item = dict[str, Any]

_SOURCE = {"isbn": "0", "page": 0, "paragraph_id": "p1"}
CLINIQLINK: dict[str, list[Item]] = {
    "TF.json": [
        {"question": "Is the liver an organ?", "answer": "True", "type": "true_false", "source": _SOURCE},
        {"question": "Is the moon an organ?", "answer": "False", "type": "true_false", "source": _SOURCE},
    ],
    "MC.json": [
        {
            "question": "Which one thins blood?",
            "options": ["Aspirin", "Gold", "Sugar", "Salt"],
            "correct_answer": "Aspirin",
            "type": "multiple_choice",
            "source": _SOURCE,
        }
    ],
    "list.json": [
        {
            "question": "Which lie in the abdomen?",
            "options": ["Heart", "Liver", "Spleen"],
            "answer": ["Liver", "Spleen"],
            "type": "list",
            "source": _SOURCE,
        }
    ],
    "short.json": [
        {"question": "What is BPH?", "answer": "Benign prostatic hyperplasia.", "type": "short_answer"},
    ],
    "short_inverse.json": [
        {
            "question": "What is the dose?",
            "answer": "0.3 units",
            "false_answer": "0.05 units",
            "incorrect_explanation": "the dose is 0.3 units",
            "type": "short_inverse",
            "source": _SOURCE,
        }
    ],
    "multi_hop.json": [
        {"question": "Why does it fail?", "answer": "Resistance develops.", "type": "multi_hop", "source": _SOURCE},
    ],
    "multi_hop_inverse.json": [
        {
            "question": "What follows?",
            "answer": "Cycloplegia.",
            "reasoning": ["Step 1: it is so.", "Step 2: so it is.", "Step 3: it must be."],
            "incorrect_reasoning_step": ["- Step 3 contains the incorrect inference.", "- Explanation: no link."],
            "type": "multi_hop_inverse",
            "source": _SOURCE,
        }
    ],
}
"""File -> its items; two of true/false, one of each other format."""


def write_cliniqlink(folder: Path, **changes: object) -> Path:
    """The folder with the seven files; `changes` maps a file's stem to what it holds instead, None leaves it out."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, items in CLINIQLINK.items():
        held = changes.get(name.removesuffix(".json"), items)
        if held is not None:
            text = held if isinstance(held, str) else json.dumps(held)
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def items_of(name: str) -> list[Item]:
    """The items of a file, a copy that a test may break."""
    return deepcopy(CLINIQLINK[f"{name}.json"])


def _document(case: str, options: list[str], right: int, explanation: list[str]) -> list[str]:
    numbered = [f"{number}- {option}" for number, option in enumerate(options, start=1)]
    return [
        "QUESTION TYPE: DIGESTIVE",
        "CLINICAL CASE:",
        case,
        "What is it?",
        *numbered,
        "5- nan",
        f"CORRECT ANSWER: {right}",
        *explanation,
    ]


_KNOWN = ["Asthma.", "Flu.", "A cold.", "Croup."]
CASIMEDICOS: dict[str, list[list[str]]] = {
    "train": [_document("A man of 47 coughs.", _KNOWN, 3, ["A/B-Claim cold/I-Claim it/I-Claim is./I-Claim"])],
    "dev": [_document("A girl of 3 sneezes.", ["Hay.", "Dust.", "Cat.", "Dog."], 1, ["Hay makes her sneeze."])],
    "test": [
        _document(
            "A man of 74 coughs.",
            _KNOWN,
            3,
            ["Asthma wheezes.", "He/B-Premise has/I-Premise no/I-Premise fever./I-Premise", "So a cold is likely."],
        ),
        _document(
            "A woman of 30 faints.",
            ["Heat.", "Hunger.", "Fear.", "Heart."],
            1,
            ["It/B-Premise was/I-Premise hot./I-Premise", "Heat/B-Claim explains/I-Claim it./I-Claim"],
        ),
        _document(
            "A boy of 9 itches.", ["Mites.", "Fleas.", "Lice.", "Soap."], 2, ["Fleas bite legs.", "He has a dog."]
        ),
    ],
}
"""Split -> documents as sentences; a token such as `cold/I-Claim` carries its label.

The first of test has the options of train's."""


def _lines(sentences: list[str]) -> str:
    tokens = ([word.partition("/") for word in sentence.split(" ")] for sentence in sentences)
    return "".join("".join(f"{word} {label or 'O'}\n" for word, _, label in each) + "\n" for each in tokens)


def write_casimedicos(folder: Path, *languages: str) -> Path:
    """The folder with a train, dev and test file for each of `languages`, with equal words."""
    for language in languages:
        place = folder / language.upper()
        place.mkdir(parents=True, exist_ok=True)
        for split, documents in CASIMEDICOS.items():
            text = "".join(_lines(document) for document in documents)
            (place / f"{split}.tsv").write_text(text, encoding="utf-8")
    return folder


def write_submission(folder: Path, **responses: list[object] | None) -> Path:
    """The folder with an output for each format, right but for `responses` by format; None leaves a format out."""
    names = {"TF": "true_false", "MC": "multiple_choice"}
    folder.mkdir(parents=True, exist_ok=True)
    for file, items in CLINIQLINK.items():
        stem = file.removesuffix(".json")
        group = names.get(stem, stem)
        answers = responses.get(group, [_right_response(item) for item in items])
        if answers is not None:
            (folder / f"{group}.json").write_text(json.dumps({"inputs": items, "responses": answers}), encoding="utf-8")
    return folder


def _right_response(item: Item) -> str:
    fields = ("correct_answer", "incorrect_explanation", "incorrect_reasoning_step", "answer")
    answer = next(item[field] for field in fields if field in item)
    return answer if isinstance(answer, str) else (", " if item["type"] == "list" else "\n").join(answer)
