"""Items of each format, the sample of the benchmark, and the real MiniLM as the scorer's encoder."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from medexam.companions.cliniqlink.measures.answers import gold_flaw
from medexam.companions.cliniqlink.measures.items import Format, ScoringItem
from medexam.companions.cliniqlink.measures.semantic import Vectors
from suite.costs import keep_for_session

FILES = {
    Format.TRUE_FALSE: "TF",
    Format.MULTIPLE_CHOICE: "MC",
    Format.LIST: "list",
    Format.SHORT: "short",
    Format.SHORT_INVERSE: "short_inverse",
    Format.MULTI_HOP: "multi_hop",
    Format.MULTI_HOP_INVERSE: "multi_hop_inverse",
}


class MiniLM:
    """all-MiniLM-L6-v2 by sentence-transformers, as the benchmark's scorer loads it."""

    def __init__(self, folder: Path) -> None:
        from sentence_transformers import SentenceTransformer

        self.model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        return self.model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False, batch_size=16)

    def pieces(self, text: str) -> list[str]:
        return self.model.tokenizer.tokenize(text)


@pytest.fixture(scope="session")
def loaded_minilm() -> MiniLM:
    from medexam.encoder_weights import minilm_folder

    minilm: MiniLM = keep_for_session(lambda: MiniLM(minilm_folder()))
    return minilm


@pytest.fixture
def minilm(loaded_minilm: MiniLM) -> MiniLM:
    """The loaded encoder, with no call remembered."""
    loaded_minilm.calls.clear()
    return loaded_minilm


def read_items(folder: Path) -> list[ScoringItem]:
    """The sample's items, keyed `format/number` from 1."""
    items = []
    for kind, name in FILES.items():
        for number, row in enumerate(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")), start=1):
            gold = row.get("correct_answer", row.get("answer"))
            items.append(
                ScoringItem(
                    kind,
                    f"{kind}/{number}",
                    row["question"],
                    tuple(gold) if isinstance(gold, list) else (gold,),
                    options=tuple(row.get("options", ())),
                    incorrect_explanation=row.get("incorrect_explanation", ""),
                    incorrect_step=tuple(row.get("incorrect_reasoning_step", ())),
                    paragraph=row["source"]["paragraph_id"],
                )
            )
    return items


@pytest.fixture(scope="session")
def sample() -> list[ScoringItem]:
    """The 35 items of the benchmark's sample."""
    folder = Path(os.environ.get("MEDEXAM_DATA", "/nowhere")) / "cliniqlink"
    if not folder.is_dir():
        pytest.skip("needs MEDEXAM_DATA with the folder cliniqlink")
    return read_items(folder)


class LetterEncoder:
    """A text is how often it holds each letter; a piece is a word or a sign. No model, and quick."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        counts = np.array([[text.lower().count(chr(97 + n)) for n in range(26)] + [0.1] for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)

    def pieces(self, text: str) -> list[str]:
        return re.findall(r"\w+|[^\w\s]", text.lower())


@pytest.fixture
def letters() -> LetterEncoder:
    return LetterEncoder()


@pytest.fixture
def make_item():
    """`make_item("list", gold=["x"], options=["x", "y"], ...)`."""

    def make(kind: str, gold=("",), options=(), key="k", question="What?", **more) -> ScoringItem:
        golds = (gold,) if isinstance(gold, str) else tuple(gold)
        return ScoringItem(Format(kind), key, question, golds, options=tuple(options), **more)

    return make


@pytest.fixture
def seven(make_item) -> list[ScoringItem]:
    """One item of each format."""
    return [
        make_item("true_false", "True", key="tf"),
        make_item("multiple_choice", "Aspirin", ["Ibuprofen", "Aspirin"], key="mc"),
        make_item("list", ["Liver", "Spleen"], ["Heart", "Liver", "Spleen"], key="list"),
        make_item("short", "Benign prostatic hyperplasia.", key="short"),
        make_item("short_inverse", "0.05 units", key="short_inverse", incorrect_explanation="the dose is 0.3 units"),
        make_item("multi_hop", "Resistance develops.", key="multi_hop"),
        make_item(
            "multi_hop_inverse",
            "Cycloplegia.",
            key="inverse",
            incorrect_step=("- Step 3 contains the incorrect inference.", "- Explanation: the link is baseless."),
        ),
    ]


@pytest.fixture
def perfect() -> dict[str, str]:
    """The right reply to each of the seven."""
    return {
        "tf": "True",
        "mc": "Aspirin",
        "list": "Liver, Spleen",
        "short": "Benign prostatic hyperplasia.",
        "short_inverse": "Incorrect Explanation: the dose is 0.3 units",
        "multi_hop": "Resistance develops.",
        "inverse": "Incorrect Reasoning Step: 3\nIncorrect Reasoning Explanation: the link is baseless.",
    }


@pytest.fixture
def sample_rows():
    """`sample_rows("multi_hop")`: the rows of one of the sample's files."""
    folder = Path(os.environ.get("MEDEXAM_DATA", "/nowhere")) / "cliniqlink"
    return lambda name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture
def perfect_replies(sample) -> dict[str, str]:
    """The right reply to each item of the sample, as the scorer wants it."""
    replies = {}
    for item in sample:
        if item.format is Format.LIST:
            replies[item.key] = ", ".join(item.gold)
        elif item.format is Format.SHORT_INVERSE:
            replies[item.key] = f"Incorrect Explanation: {item.incorrect_explanation}"
        elif item.format is Format.MULTI_HOP_INVERSE:
            flaw = gold_flaw(item.incorrect_step)
            replies[item.key] = f"Incorrect Reasoning Step: {flaw.step}\nExplanation: {flaw.explanation}"
        else:
            replies[item.key] = item.answer
    return replies
