"""Small files of the benchmarks that are answered in words, written by hand in their authors' form."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

Item = dict[str, Any]

CASES = Path(__file__).with_name("cases")
CLINIQLINK: dict[str, list[Item]] = json.loads((CASES / "cliniqlink.json").read_text("utf-8"))
"""File -> its items; two of true/false, one of each other format."""
CASIMEDICOS: dict[str, list[list[str]]] = json.loads((CASES / "casimedicos.json").read_text("utf-8"))
"""Split -> documents as sentences; a token such as `cold/I-Claim` carries its label.

The first of test has the options of train's.
"""


def rows_in(file: Path) -> Callable[[str], list[Any]]:
    """`rows_in(file)("kind")`: the rows of that kind in a file of JSON lines, without its name."""
    table = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return lambda kind: [row for name, *row in table if name == kind]


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


def write_sentences(sentences: list[str]) -> str:
    """The lines of a document; a token such as `cold/I-Claim` carries its label."""
    tokens = ([word.partition("/") for word in sentence.split(" ")] for sentence in sentences)
    return "".join("".join(f"{word} {label or 'O'}\n" for word, _, label in each) + "\n" for each in tokens)


def write_casimedicos(folder: Path, *languages: str) -> Path:
    """The folder with a train, dev and test file for each of `languages`, with equal words."""
    for language in languages:
        place = folder / language.upper()
        place.mkdir(parents=True, exist_ok=True)
        for split, documents in CASIMEDICOS.items():
            text = "".join(write_sentences(document) for document in documents)
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
