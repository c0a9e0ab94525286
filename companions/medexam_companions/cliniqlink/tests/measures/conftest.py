"""Items of each format, and an encoder that needs no model."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from medexam_companions.cliniqlink import Format, ScoringItem


class LetterEncoder:
    """A text is how often it holds each letter; a piece is a word or a sign. No model, and quick."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
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
