"""A program asked as in any run: one question in a file, a scripted model, passages of a retriever of one's own."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import dspy
import pytest

import medexam
from medexam.model_calls import Dialogue
from medexam.programs import ProgramContext, build_prediction, build_program, kept_calls, look
from medexam.serve import ScriptedEngine
from medexam.specs import build_cells
from scripted_engines import LAST_MADE, MADE

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
DATASETS = {"words": {"kind": "short_answer", "path": "none.jsonl"}, "spans": {"kind": "spans", "path": "none.jsonl"}}
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

    said: medexam.Prediction
    dialogues: list[Dialogue]
    run: Any = None

    @property
    def turns(self) -> list[str]:
        """The last turn of a user in each call."""
        return [[turn["content"] for turn in one.messages if turn["role"] == "user"][-1] for one in self.dialogues]

    @property
    def seeds(self) -> list[int | None]:
        return [one.sampling.get("seed") for one in self.dialogues]


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


def make_engine(replies) -> ScriptedEngine:
    """Make the engine that `LAST_MADE` means, of a text, a table or a function of a turn; it may be given itself."""
    if not isinstance(replies, ScriptedEngine):
        table = replies if isinstance(replies, dict) else {"*": replies}
        replies = ScriptedEngine((lambda turn, _, reply=replies: reply(turn)) if callable(replies) else table)
    MADE.append(replies)
    return replies


@pytest.fixture
def ask(tmp_path):
    """`ask(program, replies)` -> a question's `Asked`; `replies` are a text, a table, or a function of a turn."""

    def call(
        program, replies, *, row=None, options=OPTIONS, dataset=None, language="en", model=None, fresh=True, **parts
    ):
        """`row` are fields of the question, `dataset` is the part of a spec for questions of another kind."""
        asked = {"stem": STEM, "options": list(options), "answer": 1} if dataset is None else {}
        (tmp_path / "exam.jsonl").write_text(json.dumps(asked | (row or {})) + "\n")
        engine = make_engine(replies)
        spec = {
            "name": "asked",
            "dataset": {"path": str(tmp_path / "exam.jsonl"), "language": language, **(dataset or CHOICE)},
            "model": {"engine": LAST_MADE, **(model or {})},
            "program": program if isinstance(program, dict) else {"kind": program},
            **parts,
        }
        runs = medexam.run(spec, runs_dir=tmp_path / "runs", fresh=fresh, progress=False, track=False)
        (said,) = runs[0].predictions.values()
        return Asked(said, engine.dialogues, runs[0])

    return call


@pytest.fixture
def ask_task():
    """`ask_task(program, task, replies)` -> the `Asked` of a question in words; `more` are parts of its context."""

    def call(program, task, replies, dataset="cliniqlink", **more):
        engine = make_engine(replies if callable(replies) else {"*": replies})
        _, (cell,) = build_cells({"name": "x", "dataset": DATASETS.get(dataset, dataset), "program": program}, {})
        made = build_program(cell.program, task.language, ProgramContext(**more))
        with dspy.context(lm=medexam.lm(LAST_MADE)):
            with kept_calls() as kept:
                outcome = made(question=task)
            said = build_prediction(task, outcome, kept.all(), program="p", spec_digest="d", latency_s=0.1)
            again = asyncio.run(look(made, task, said.calls))
        assert again.calls == said.calls
        assert again.output.get("text") == said.text
        assert len(engine.dialogues) <= made.calls_for(task)
        return Asked(said, engine.dialogues)

    return call
