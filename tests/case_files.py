"""A small CasiMedicos-Arg folder, written in its own form: IOB2 lines, a document after the other."""

from collections.abc import Sequence
from pathlib import Path

CLAIM = "Answer {n:02d} follows from the fever."
"""The labelled sentence of document `n`; its words tell the document from the others."""
REST = "Nothing else fits well here."
"""The other sentence of every explanation."""
FOLDERS = {"en": "EN", "es": "ES"}


def write_cases(folder: Path, count: int, languages: Sequence[str] = ("en",), label: str = "Premise") -> Path:
    """`count` documents in the test split of each language, one in the others, the claim labelled; gives the folder."""
    for language in languages:
        (folder / FOLDERS[language]).mkdir(parents=True, exist_ok=True)
        for split, numbers in (("train", [97]), ("dev", [98]), ("test", range(count))):
            text = "".join(_document(n, label) for n in numbers)
            (folder / FOLDERS[language] / f"{split}.tsv").write_text(text, encoding="utf-8")
    return folder


def _document(n: int, label: str) -> str:
    plain = [
        "QUESTION TYPE: DIGESTIVE",
        "CLINICAL CASE:",
        f"A {20 + n}-year-old man coughs.",
        "What is it?",
        f"1- Asthma {n}.",
        "2- Flu.",
        "3- A cold.",
        "4- Croup.",
        "5- nan",
        "CORRECT ANSWER: 3",
    ]
    claim = CLAIM.format(n=n).split()
    marks = [f"B-{label}", *[f"I-{label}"] * (len(claim) - 1)]
    sentences = [[(word, "O") for word in sentence.split()] for sentence in plain]
    sentences += [list(zip(claim, marks, strict=True)), [(word, "O") for word in REST.split()]]
    return "".join("".join(f"{word} {mark}\n" for word, mark in sentence) + "\n" for sentence in sentences)
