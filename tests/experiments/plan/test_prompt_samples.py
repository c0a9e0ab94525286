"""A run is known by what it sends: what changes a prompt makes another run, wherever it comes from."""

import json

import dspy
import pytest

import medexam
from dspy_examples import build_devset, exact

MODULE = """
import os, random, socket
from pathlib import Path
import dspy
import values

class Guess(dspy.Module):
    def __init__(self):
        super().__init__()
        self.answer = dspy.Predict("question, hint -> answer: int")

    def forward(self, question: str):
        {before}
        return self.answer(question=question, hint={hint})
"""
HINTS = {
    "file": 'Path(__file__).with_name("hint.txt").read_text()',
    "variable": 'os.environ["HINT"]',
    "value": "values.HINT",
    "lot": "str(random.random())",
    "none": '"none"',
}


@pytest.fixture
def plan(tmp_path, monkeypatch, replies):
    """`plan("file", "think")` -> digest and prompts in the identity of a module whose hint is the text."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "values.py").write_text("HINT = ''")

    def look(source, text="", before="pass"):
        (tmp_path / "guess.py").write_text(MODULE.format(before=before, hint=HINTS[source]))
        (tmp_path / "hint.txt").write_text(text)
        monkeypatch.setenv("HINT", text)
        __import__("values").HINT = text
        spec = {"name": "sent", "program": f"{tmp_path}/guess.py:Guess", "model": replies(), "dataset": "headqa_sample"}
        (run,) = medexam.run(spec, limit=1, runs_dir=tmp_path / "runs", progress=False, track=False)
        record = json.loads((run.folder / "spec.json").read_text())
        return record["spec_digest"], record["identity"]["prompts"]

    return look


@pytest.mark.parametrize("source", ["file", "variable", "value"])
def test_what_changes_a_prompt_makes_another_run(plan, source) -> None:
    first, other, again = plan(source, "think"), plan(source, "think twice"), plan(source, "think")
    assert first == again != other
    assert len(set(first[1])) == 3


@pytest.mark.parametrize(
    ("source", "before"),
    [
        ("lot", "pass"),
        ("none", 'raise ValueError("no")'),
        ("none", 'socket.create_connection(("127.0.0.1", 9))'),
    ],
)
def test_a_module_that_shows_no_prompt_is_known_by_its_source(plan, source, before) -> None:
    first = plan(source, before=before)
    assert first == plan(source, before=before)
    assert first[1] is None
    assert first[0] != plan(source, before=f"{before}  # edited")[0]


def test_modules_are_known_by_the_version_of_dspy_and_programs_that_ship_are_not(plan, ask, spec, tmp_path) -> None:
    plan("none")
    ask(spec)
    identities = [json.loads(path.read_text())["identity"] for path in tmp_path.glob("runs/*/spec.json")]
    assert {identity.get("dspy") for identity in identities} == {dspy.__version__, None}
    assert len({identity["reader_version"] for identity in identities}) == 1


class Told(dspy.Module):
    def __init__(self, path) -> None:
        super().__init__()
        self.path = path
        self.answer = dspy.Predict("question, hint -> answer")

    def forward(self, question):
        found = dspy.settings.rm(question, k=1)[0].long_text if dspy.settings.rm else ""
        return self.answer(question=question, hint=self.path.read_text() + found)


class Retriever:
    def __init__(self, text) -> None:
        self.text = text

    def __call__(self, query, k):
        return [dspy.Example(long_text=self.text)]


def test_an_evaluation_is_known_by_its_prompts_too(tmp_path) -> None:
    lm = dspy.utils.DummyLM({"q": {"answer": "1"}})
    (hint := tmp_path / "hint.txt").write_text("think")

    def evaluate(size=4, **settings):
        with dspy.context(lm=lm, **settings):
            metric = medexam.Evaluate(devset=build_devset(size), metric=exact, runs_dir=tmp_path / "runs", track=False)
            return metric(Told(hint)).run.id

    first = evaluate(2)
    assert evaluate() == first
    hint.write_text("think twice")
    retrieved = [evaluate(rm=Retriever(text)) for text in ("a", "b", "a")]
    assert len({first, evaluate(), *retrieved}) == 4
    assert retrieved[0] == retrieved[2]
