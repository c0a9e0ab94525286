"""A program asked as in any run: one question in a file, a scripted model, passages of a retriever of one's own."""

import json
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pytest

import medexam
from medexam.model_calls import Dialogue
from medexam.serve import ScriptedEngine

STEM = "Excitatory postsynaptic potentials:"
OPTIONS = (
    "Are all-or-none.",
    "Are hyperpolarizing.",
    "They can be added.",
    "They spread long distances.",
    "They present a refractory period.",
)
LINES = "\n".join(f"{number}. {text}" for number, text in enumerate(OPTIONS, start=1))
SHOWN = f"{STEM}\n{LINES}"
"""The question as a prompt shows it."""
CHOICE = {"kind": "choice", "columns": {"numbering": "one"}}
FINDER = """
from medexam.retrievers import Hit, Passage

class Finder:
    digest = "x"

    def search(self, queries, k):
        return [{found} for query in queries]
"""
BY_QUERY = """[
    Hit(Passage(f"{query}/{rank}", "", f"On {query}, {rank}.", "test"), 9.0 - rank, rank) for rank in range(1, k + 1)
]"""
"""Passages that are named after what was looked up."""


@dataclass(frozen=True)
class Asked:
    """What came of a question."""

    run: Any
    dialogues: list[Dialogue]

    @property
    def said(self) -> medexam.Prediction:
        (prediction,) = self.run.predictions.values()
        return prediction

    @property
    def turns(self) -> list[str]:
        """The last turn of a user in each call."""
        return [[turn["content"] for turn in one.messages if turn["role"] == "user"][-1] for one in self.dialogues]

    @property
    def seeds(self) -> list[int | None]:
        return [one.sampling.seed for one in self.dialogues]


@pytest.fixture
def finder(tmp_path):
    """`finder(passages)` -> the retriever of a spec that finds these, or by its query where a text says how."""

    def write(found):
        if not isinstance(found, str):
            hits = [f"Hit(Passage({i!r}, {title!r}, {text!r}, 'test'), {score}, 1)" for i, title, text, score in found]
            found = f"[{', '.join(hits)}][:k]"
        path = tmp_path / f"finder_{crc32(found.encode())}.py"
        path.write_text(FINDER.format(found=found))
        return {"kind": f"{path}:Finder"}

    return write


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """`ask(program, replies)` -> a question's `Asked`; `replies` are a text, a table, or a function of a user's turn."""

    read_script = ScriptedEngine.from_file

    def call(program, replies, *, row=None, options=OPTIONS, dataset=None, language="en", model=None, **parts):
        """`row` are fields of the question, `dataset` is the part of a spec for questions of another kind."""
        asked = {"stem": STEM, "options": list(options), "answer": 1} if dataset is None else {}
        (tmp_path / "exam.jsonl").write_text(json.dumps(asked | (row or {})) + "\n")
        (tmp_path / "replies.yaml").write_text("'*': none\n")
        script = read_script(tmp_path / "replies.yaml").info().revision
        table = replies if callable(replies) or isinstance(replies, dict) else {"*": replies}
        engine = ScriptedEngine(table, revision=script)
        monkeypatch.setattr(ScriptedEngine, "from_file", lambda _: engine)
        spec = {
            "name": "asked",
            "dataset": {"path": str(tmp_path / "exam.jsonl"), "language": language, **(dataset or CHOICE)},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml"), **(model or {})},
            "program": program if isinstance(program, dict) else {"kind": program},
            **parts,
        }
        runs = medexam.run(spec, runs_dir=tmp_path / "runs", fresh=True, progress=False, track=False)
        return Asked(runs[0], engine.dialogues)

    return call
