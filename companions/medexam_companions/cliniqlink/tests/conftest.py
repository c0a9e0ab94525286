"""Items of each format, an encoder that needs no model, and scores of replies to items."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from medexam.predictions import Reason, Status
from medexam.questions import Task, TaskGold
from medexam_companions.cliniqlink import score_cliniqlink
from predicted import predicted

SAME = {"program": "by_format", "spec_digest": "d"}


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


class Item(NamedTuple):
    """A task with what is expected."""

    task: Task
    gold: TaskGold


class Part:
    """What one format scores in one profile."""

    def __init__(self, run: Any, kind: str, profile: str) -> None:
        measures = run.metrics.by["group"][kind].measures
        self.measures = {name: measure.value for name, measure in measures.items()}
        self.n = measures[profile].n
        self.score = self.measures[profile]
        self.forgiving = self.measures.get(f"{profile}_forgiving")
        counts = run.metrics.tallies.get("Answers", {}).get(kind, {})
        self.malformed, self.matches = (
            {name.removeprefix(f"{what}: "): n for name, n in counts.items() if name.startswith(what)}
            for what in ("malformed", "match")
        )
        self.dropped = counts.get("dropped", 0)
        self.items = {key: score for key, score in run.items[profile].items() if key.startswith(f"{kind}/")}


class Scores:
    """What a run scores in one profile."""

    def __init__(self, run: Any, profile: str) -> None:
        self.run = run
        self.formats = {kind: Part(run, kind, profile) for kind in run.metrics.by["group"]}
        self.overall = run.metrics.measures[profile].value
        self.forgiving_overall = run.metrics.measures[f"{profile}_forgiving"].value


@pytest.fixture
def letters() -> LetterEncoder:
    return LetterEncoder()


@pytest.fixture
def make_item():
    """`make_item("list", gold=["x"], options=["x", "y"], ...)`."""

    def make(kind: str, gold=("",), options=(), key="k", question="What?", **more) -> Item:
        golds = (gold,) if isinstance(gold, str) else tuple(gold)
        task = Task(f"{kind}/{key}", kind, "en", question, options=tuple(options))
        return Item(task, TaskGold(answers=golds, **more))

    return make


@pytest.fixture
def score(letters):
    """`score(items, ["reply to each"], profile="paper")`; the golds are the references unless there are others."""

    def call(items: Sequence[Item], replies: Sequence[str], profile="published", references=None, seed=0) -> Scores:
        tasks = [item.task for item in items]
        predictions = {task.key: reply_of(task.key, reply) for task, reply in zip(tasks, replies, strict=True)}
        golds: Mapping[str, TaskGold] = {item.task.key: item.gold for item in items}
        if references is None:
            references = [" ".join(item.gold.answers) for item in items if item.task.group != "multiple_choice"]
        run = score_cliniqlink(tasks, golds, predictions, encoder=letters, references=references, seed=seed)
        return Scores(run, profile)

    return call


def reply_of(key: str, text: str):
    """A prediction that says a text; an empty one is unanswered."""
    if not text:
        return predicted(question=key, status=Status.UNANSWERED, reason=Reason.UNPARSED, reply="", **SAME)
    return predicted(question=key, status=Status.ANSWERED, text=text, reply=text, **SAME)


@pytest.fixture
def seven(make_item) -> list[Item]:
    """One item of each format."""
    return [
        make_item("true_false", "True"),
        make_item("multiple_choice", "Aspirin", ["Ibuprofen", "Aspirin"]),
        make_item("list", ["Liver", "Spleen"], ["Heart", "Liver", "Spleen"]),
        make_item("short", "Benign prostatic hyperplasia."),
        make_item("short_inverse", "0.05 units", incorrect_explanation="the dose is 0.3 units"),
        make_item("multi_hop", "Resistance develops."),
        make_item(
            "multi_hop_inverse",
            "Cycloplegia.",
            incorrect_step=("- Step 3 contains the incorrect inference.", "- Explanation: the link is baseless."),
        ),
    ]


@pytest.fixture
def perfect() -> list[str]:
    """The right reply to each of the seven."""
    return [
        "True",
        "Aspirin",
        "Liver, Spleen",
        "Benign prostatic hyperplasia.",
        "Incorrect Explanation: the dose is 0.3 units",
        "Resistance develops.",
        "Incorrect Reasoning Step: 3\nIncorrect Reasoning Explanation: the link is baseless.",
    ]
